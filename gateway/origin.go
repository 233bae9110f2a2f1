package gateway

import "net/http"

// AllowOrigin lets the page of a request's Origin call and read these headers, and answers a
// browser's preflight with the methods and headers that a call may have.
func AllowOrigin(w http.ResponseWriter, r *http.Request, exposed, methods, headers string) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", exposed)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", headers)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
