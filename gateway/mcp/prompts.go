package mcpgateway

import (
	"context"
	_ "embed" // of texts
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Texts for models. None holds a word of a counterparty.
var (
	//go:embed prompts/instructions.md
	kitInstructions string
	//go:embed prompts/instructions_all.md
	allInstructions string
	//go:embed prompts/turn.md
	turnText string
	//go:embed prompts/mandate.md
	kitMandate string
	//go:embed prompts/mandate_all.md
	allMandate string
	//go:embed prompts/background.md
	backgroundText string
)

// texts are what models are told of a set of tools.
type texts struct{ instructions, mandate string }

func textsOf(all bool) texts {
	if all {
		return texts{allInstructions + "\n" + backgroundText, allMandate}
	}
	return texts{kitInstructions + "\n" + backgroundText, kitMandate}
}

// addPrompts adds the prompts.
func (t texts) addPrompts(s *mcp.Server) {
	s.AddPrompt(&mcp.Prompt{
		Name: "take_turn", Title: "Take a turn in the background", Description: "How to take one turn of a negotiation with no user present",
		Arguments: []*mcp.PromptArgument{{Name: "negotiationId", Description: "the negotiation; by default the turn that has waited longest"}},
	}, filled(turnText, "Which turn", "negotiationId"))
	s.AddPrompt(&mcp.Prompt{
		Name: "negotiate", Title: "Negotiate within a mandate", Description: "How to negotiate for a user who says what may be agreed",
		Arguments: []*mcp.PromptArgument{
			{Name: "mandate", Description: "what to reach, what may be agreed, and what must be asked", Required: true},
			{Name: "sessionId", Description: "a session that is under way; by default open one"},
		},
	}, needed("mandate", filled(t.mandate, "The mandate", "mandate", "sessionId")))
}

// needed refuses a prompt without an argument.
func needed(name string, prompt mcp.PromptHandler) mcp.PromptHandler {
	return func(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if r.Params.Arguments[name] == "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the argument " + name + " is missing"}
		}
		return prompt(ctx, r)
	}
}

// filled is a prompt with the user's arguments below it.
func filled(prompt, title string, names ...string) mcp.PromptHandler {
	return func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		var b strings.Builder
		b.WriteString(prompt)
		for _, name := range names {
			if value := r.Params.Arguments[name]; value != "" {
				b.WriteString("\n## " + title + " (" + name + ")\n\n" + value + "\n")
			}
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: b.String()}}}}, nil
	}
}
