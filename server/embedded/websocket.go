package embedded

import (
	"errors"
	"net"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
)

// WebsocketURL is the URL for WebSocket clients, "" if there is none.
func (s *Server) WebsocketURL() string {
	if !s.websocket {
		return ""
	}
	return s.nats.WebsocketURL()
}

func (o Options) addWebsocket(opts *server.Options) (err error) {
	if o.Websocket == "" {
		return nil
	}
	ws := &opts.Websocket
	ws.Host, ws.Port, err = o.address("Websocket", o.Websocket)
	if err != nil {
		return err
	}
	ws.TLSConfig, ws.NoTLS, ws.HandshakeTimeout = o.TLS, o.TLS == nil, loginTimeout
	if o.Dev {
		return ownOrigins(ws)
	}
	return nil
}

// ownOrigins refuses pages of other origins. Same origin is not enough: another name that
// points to this machine is the origin and the host of the same request.
func ownOrigins(ws *server.WebsocketOpts) error {
	if ws.Port == server.RANDOM_PORT {
		free, err := net.Listen("tcp", net.JoinHostPort(ws.Host, "0"))
		if err != nil {
			return err
		}
		_, port, err := net.SplitHostPort(free.Addr().String())
		if err := errors.Join(err, free.Close()); err != nil {
			return err
		}
		if ws.Port, err = strconv.Atoi(port); err != nil {
			return err
		}
	}
	scheme := "http://"
	if ws.TLSConfig != nil {
		scheme = "https://"
	}
	ws.SameOrigin = true
	for _, host := range []string{"localhost", "127.0.0.1", "::1", ws.Host} {
		ws.AllowedOrigins = append(ws.AllowedOrigins, scheme+net.JoinHostPort(host, strconv.Itoa(ws.Port)))
	}
	return nil
}
