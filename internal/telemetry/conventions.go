package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0" // the last that has both gen_ai and messaging
)

// conventions is the schema of all spans. What they have is here, so that one version of it is pinned.
const conventions = semconv.SchemaURL

var (
	messaging = []attribute.KeyValue{semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationTypeProcess}
	outcomeOf = attribute.Key("parley.outcome").String
	codeIs    = semconv.ErrorTypeKey.String
)

// ofAct are the attributes of the span of an act; id is "" before it is read.
func ofAct(session, id string) []attribute.KeyValue {
	all := append(ofVerb("submit"), semconv.GenAIConversationID(session))
	if id != "" {
		all = append(all, semconv.MessagingMessageID(id))
	}
	return all
}

// ofVerb are those of the span of a verb.
func ofVerb(name string) []attribute.KeyValue {
	return append(messaging[:len(messaging):len(messaging)], semconv.MessagingOperationName(name))
}

// ofBroker are those of the resource.
func ofBroker(version, id string) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.ServiceName("parley"), semconv.ServiceVersion(version), semconv.ServiceInstanceID(id)}
}
