// Package cluster runs brokers on three NATS servers and takes servers, leaders and
// brokers away while agents negotiate. What is expected: a client that asks again is
// answered, nothing that was accepted is missing, and every inbox has it once and in order.
package cluster
