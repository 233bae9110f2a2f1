package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
)

func notValid(file string, r agreement.Report) error {
	return fmt.Errorf("%s is not a valid agreement: %s", file, r.Faults[0])
}

func agreementVerify() *cobra.Command {
	var broker brokerTrust
	var keys []string
	var unsigned bool
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "check an agreement offline", Args: args(cobra.ExactArgs(1)),
		Long: `Checks the digests and the hash, the parties' signatures, and the entries of offer
and acceptance with their receipts; with --log-key also that the agreement is in the
public log. The keys that the file names are always judged; --broker-key and --key say
which ones they have to be: a document that these have not signed does not hold.
Without them, compare the keys that it names with those that you trust, and read
what the last line says is proven.`,
		Example: `  parley agreement verify deal.json --broker-key UAFC…
  parley agreement verify public.json --key agent://acme.com/buyer=UBX2…`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := broker.read(); err != nil {
				return err
			}
			trust := agreement.Trust{Broker: broker.key, BrokerKeys: broker.keys, Unsigned: unsigned, Keys: map[performatives.Agent]performatives.Key{}}
			for _, pair := range keys {
				uri, key, _ := strings.Cut(pair, "=")
				a, err := performatives.ParseAgent(uri)
				if k := performatives.Key(key); err != nil || !k.Valid() {
					return usage(fmt.Errorf("--key %s is not a principal's URI, =, and its public user nkey", pair))
				}
				trust.Keys[a] = performatives.Key(key)
			}
			if err := trustLog(cmd, &trust); err != nil {
				return err
			}
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			if err := isFor(args[0], data, "agreement"); err != nil {
				return err
			}
			report := agreement.Verify(data, trust)
			report.Demand(trust)
			return reportAgreement(cmd, report)
		},
	}
	broker.flags(cmd.Flags(), "the one that the receipts name")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "a party's `URI=KEY`, which has to have signed; can be repeated (default: the keys in the file alone)")
	cmd.Flags().String("log-key", "", "the public log's `KEY`, as 'parley log key' prints it (default: its position is not checked)")
	witnessFlag(cmd)
	cmd.Flags().BoolVar(&unsigned, "allow-unsigned", false, "accept unsigned entries, as a broker under --dev does")
	return cmd
}

// isFor refuses a file that the verify of another command is for.
func isFor(file string, data []byte, command string) error {
	var has struct {
		Agreement jsontext.Value `json:"agreement_hash"`
		Evidence  jsontext.Value `json:"transcript"`
	}
	if json.Unmarshal(data, &has) != nil {
		has.Agreement, has.Evidence = nil, nil // verify says what is wrong with it
	}
	switch {
	case has.Evidence != nil && command != "evidence":
		return usage(fmt.Errorf("%s is a bundle of evidence: parley evidence verify %[1]s", file))
	case has.Agreement != nil && command != "agreement":
		return usage(fmt.Errorf("%s is an agreement: parley agreement verify %[1]s", file))
	}
	return nil
}

func reportAgreement(cmd *cobra.Command, r agreement.Report) error {
	result := struct {
		ID       agreement.ID      `json:"agreementId"`
		OK       bool              `json:"ok"`
		Signed   []agreement.DID   `json:"signed"`
		Redacted []string          `json:"redacted"`
		Logged   bool              `json:"logged"`
		Proves   string            `json:"proves,omitzero"` // without faults
		Faults   []agreement.Fault `json:"faults"`

		Unchecked []performatives.Key `json:"uncheckedKeys,omitzero"` // without --broker-key
	}{r.Document.ID, len(r.Faults) == 0, r.Signed, r.Redacted, r.Logged, "", r.Faults, r.Unchecked}
	if result.OK {
		result.Proves = r.Proves()
	}
	err := show(cmd, result, func(s render.Style) string { return render.Agreement(r, s) })
	if err == nil && !result.OK {
		err = fmt.Errorf("the agreement does not hold: %s", r.Faults[0])
	}
	return err
}
