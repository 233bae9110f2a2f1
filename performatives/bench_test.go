package performatives

import "testing"

func BenchmarkRead(b *testing.B) {
	data := mustSign(b, envelope)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifySignature(b *testing.B) {
	m, key := mustRead(b, string(mustSign(b, envelope))), testKey(b, "alpha").Key()
	b.ReportAllocs()
	for b.Loop() {
		if err := m.VerifySignature(key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDeliver(b *testing.B) {
	m, broker := mustRead(b, string(mustSign(b, envelope))), testKey(b, "broker")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := m.Deliver(linkedBySender, acceptedAt, "CONVERSING", broker); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadDelivered(b *testing.B) {
	data, _ := mustDeliver(b, mustRead(b, string(mustSign(b, envelope))), linkedBySender)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, err := ReadDelivered(data); err != nil {
			b.Fatal(err)
		}
	}
}
