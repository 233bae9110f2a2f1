package transcript_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

func ExampleVerify() {
	vector, err := txtar.ParseFile("testdata/content-changed.txtar")
	if err != nil {
		log.Fatal(err)
	}
	const broker = performatives.Key("UCLNVLJCFTKX6QKPE7FQ3VWFFV27LUYZDKX3XMSZYZ2JGSGIWTKPWK4D")
	faults, err := transcript.Verify(bytes.NewReader(vector.Files[0].Data), broker, transcript.Expect{})
	if err != nil {
		log.Fatal(err)
	}
	for _, fault := range faults {
		fmt.Printf("line %d breaks %s\n", fault.Line, fault.Rule)
	}
	// Output:
	// line 5 breaks hash
	// line 5 breaks signature
}
