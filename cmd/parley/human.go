package main

import "github.com/spf13/cobra"

func humanCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "human", Short: "register the humans behind agents",
		Long: "Humans decide what agents may not. `parley agent ls`, show and rm are for them too.",
	}, humanAdd()))
}

func humanAdd() *cobra.Command {
	r := &registration{}
	cmd := &cobra.Command{
		Use: "add URI", Short: "register a human and make the key", Args: args(cobra.ExactArgs(1)),
		Example: `  parley human add human://acme.com/alice --may-decide --key-out alice.nk
  parley human add human://acme.com/bob --public-key UDXU…`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.add(cmd, args[0], true) },
	}
	r.flags(cmd)
	cmd.Flags().BoolVar(&r.card.Registry.MayDecide, "may-decide", false, "decides the escalations of the organisation")
	cmd.Flags().BoolVar(&r.card.Registry.Auditor, "auditor", false, "reads the sessions of the organisation, and does nothing else")
	return cmd
}
