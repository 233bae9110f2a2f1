//go:build gateways

package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wants are what the runner asks of a server and the gateway does not have.
func wants(o *mcp.ServerOptions) {
	o.Capabilities = &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}}
	o.CompletionHandler = func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
	}
	o.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
	o.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
}

// The fixtures' contents.
var (
	pixel   = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89")
	silence = []byte("RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
)

func says(text string) *mcp.TextContent { return &mcp.TextContent{Text: text} }

func holds(uri, text string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: text}}
}

// fixtures adds the tools, resources and prompts that the runner's scenarios name.
func fixtures(s *mcp.Server) {
	schema := json.RawMessage(`{"type": "object", "properties": {"prompt": {"type": "string"}, "message": {"type": "string"}}}`)
	add := func(name string, schema json.RawMessage, run func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: name, InputSchema: schema}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			content, err := run(ctx, r)
			res := &mcp.CallToolResult{Content: content}
			if err != nil {
				res.SetError(err)
			}
			return res, nil
		})
	}
	answers := func(name string, content ...mcp.Content) {
		add(name, schema, func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) { return content, nil })
	}
	image := &mcp.ImageContent{Data: pixel, MIMEType: "image/png"}
	answers("test_simple_text", says("This is a simple text response for testing."))
	answers("test_image_content", image)
	answers("test_audio_content", &mcp.AudioContent{Data: silence, MIMEType: "audio/wav"})
	answers("test_embedded_resource", holds("test://embedded-resource", "This is an embedded resource content."))
	answers("test_multiple_content_types", says("Multiple content types test:"), image, holds("test://mixed-content-resource", `{"test":"data"}`))
	add("test_error_handling", schema, func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		return nil, errors.New("This tool intentionally returns an error for testing")
	})
	add("test_tool_with_logging", schema, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: text}); err != nil {
				return nil, err
			}
		}
		return []mcp.Content{says("logged")}, nil
	})
	add("test_tool_with_progress", schema, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		for _, done := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return []mcp.Content{says(fmt.Sprint(r.Params.GetProgressToken()))}, nil
	})
	add("test_sampling", schema, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		var args struct{ Prompt string }
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, err
		}
		res, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: says(args.Prompt)}}, MaxTokens: 100})
		if err != nil {
			return nil, err
		}
		text, _ := res.Content.(*mcp.TextContent)
		return []mcp.Content{says("LLM response: " + text.Text)}, nil
	})
	for name, properties := range map[string]string{
		"test_elicitation": `"username": {"type": "string", "description": "User's response"}, "email": {"type": "string", "description": "User's email address"}`,
		"test_elicitation_sep1034_defaults": `"name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30}, "score": {"type": "number", "default": 95.5},
			"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"}, "verified": {"type": "boolean", "default": true}`,
		"test_elicitation_sep1330_enums": `"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
			"titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
			"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
			"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
			"titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}`,
	} {
		add(name, schema, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
			res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Please answer", RequestedSchema: json.RawMessage(`{"type": "object", "properties": {` + properties + `}}`)})
			if err != nil {
				return nil, err
			}
			return []mcp.Content{says(fmt.Sprintf("User response: action=%s, content=%v", res.Action, res.Content))}, nil
		})
	}

	resource := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		c := &mcp.ResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: "This is the content of the static text resource."}
		if id, is := strings.CutPrefix(r.Params.URI, "test://template/"); is {
			c.MIMEType, c.Text = "application/json", fmt.Sprintf(`{"id": %q, "templateTest": true}`, strings.TrimSuffix(id, "/data"))
		}
		if strings.HasSuffix(r.Params.URI, "binary") {
			c.MIMEType, c.Text, c.Blob = "image/png", "", pixel
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
	}
	for _, name := range []string{"static-text", "static-binary", "watched-resource"} {
		s.AddResource(&mcp.Resource{Name: name, URI: "test://" + name}, resource)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data"}, resource)

	prompt := func(name string, arguments []string, content func(map[string]string) []mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: name}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			res := &mcp.GetPromptResult{}
			for _, c := range content(r.Params.Arguments) {
				res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			return res, nil
		})
	}
	prompt("test_simple_prompt", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{says("This is a simple prompt for testing.")}
	})
	prompt("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{says(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"]))}
	})
	prompt("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{holds(a["resourceUri"], "Embedded resource content for testing."), says("Please process the embedded resource above.")}
	})
	prompt("test_prompt_with_image", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{image, says("Please analyze the image above.")}
	})
}
