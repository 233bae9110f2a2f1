package oapgateway

import (
	"net"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session/agreement"
)

// ManifestPath is where OAP looks for a tool's manifest (OAP-CORE-1.0, section 6.1).
const ManifestPath = "/.well-known/oap-tool.json"

// manifest describes this installation by OAP's schema
// https://openagentprotocol.eu/schemas/v1.0/oap-manifest.schema.json. The schema requires
// what a broker cannot know of its operator: there it claims the least. It names the
// address that RFC 2142 reserves for complaints, and no jurisdiction (ZZ).
func (g *Gateway) manifest(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	scheme := "http://"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https://"
	}
	data, err := json.Marshal(manifest(scheme+r.Host, host, agreement.DIDKeyOf(g.o.Key)), json.Deterministic(true))
	if err != nil {
		g.refuse(w, err)
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cache-Control", "public, max-age=300")
	write(w, http.StatusOK, jsontext.Value(data))
}

type object = map[string]any

// categories are what a negotiation may be opened about.
var categories = []string{"pricing", "scheduling", "scope", "sla", "terms"}

func manifest(base, host string, did agreement.DID) object {
	contact := "abuse@" + strings.Trim(host, "[]")
	byMail := "mailto:" + contact
	const description = "Negotiates agreements between two parties by OAP RFC-0002: signed proposals and counter-proposals, and an agreement that both have signed."
	return object{
		"oap_version": "1.0",
		"tool": object{
			"id": "parley", "did": did, "name": "parley", "version": version(), "categories": []string{"negotiation"},
			"publisher":              object{"did": did, "legal_name": host, "verified": false},
			"description_for_humans": description,
			"description_for_agents": description + " Open a negotiation with endpoints.invoke; the paths are those of the RFC. Authenticate with a bearer token.",
		},
		"endpoints": object{
			"invoke": base + Base + "negotiation/open", "audit": base + "/log/checkpoint", "data_delete": byMail, "incident": byMail,
		},
		"auth": []object{{"method": "api_key", "config": object{"header": "Authorization", "scheme": "Bearer"}}},
		"actions": []object{{
			"id": "negotiation_open", "version": "1.0.0", "summary": "Opens a negotiation with another party.",
			"description_for_agents": "Returns the negotiation_id. Then propose, accept, reject or withdraw below /oap/negotiation/{negotiation_id}.",
			"input_schema": object{
				"type": "object", "required": []string{"to"},
				"properties": object{"to": object{"type": "string"}, "category": object{"type": "string"}, "policy": object{"type": "object"}},
			},
			"output_schema": object{
				"type": "object", "required": []string{"negotiation_id", "state"},
				"properties": object{"negotiation_id": object{"type": "string"}, "state": object{"type": "string"}},
			},
			"side_effects": "write", "idempotent": false, "rate_limit": object{"rpm": 600, "concurrent": 10},
			"data_classes_in": []string{}, "data_classes_out": []string{},
			"examples": []object{{
				"input":  object{"to": "did:web:agent-b.example", "category": "pricing"},
				"output": object{"negotiation_id": "neg_019478a3-0001-7def-8a12-000000000001", "state": "open"},
			}},
		}},
		"negotiation": object{
			"supported": true, "categories": categories,
			"max_rounds": 8, "default_validity_minutes": 60, "binding_acceptance": true,
		},
		"sla": object{
			"uptime_target": 0, "latency_p95_ms": 1000, "max_call_duration_ms": 60_000, "regions": []string{"unspecified"},
			"incident_disclosure_within_hours": 168,
		},
		"trust": object{"publisher_verified": false, "data_residency": []string{}, "gdpr_compliant": false},
		"data_policy": object{
			"stores_principal_data": true, "retention_days": 36_500, "shares_with_third_parties": false,
			"training_on_principal_data": "never", "deletion_endpoint": byMail, "lawful_bases": []string{"contract"},
		},
		"risk_class": "limited", "jurisdictions": []string{"ZZ"},
		"governance": object{"dispute_resolution_url": byMail, "contact_email": contact},
	}
}

// version is the program's, as OAP wants versions: three numbers.
func version() string {
	if v := strings.TrimPrefix(api.Version, "v"); strings.Count(v, ".") >= 2 {
		return v
	}
	return "0.0.0"
}
