// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"testing"

	"github.com/metehq/mete/ai"
)

func TestDetectFormat(t *testing.T) {
	for _, tt := range []struct {
		path   string
		want   ai.Format
		model  string // of the path
		stream bool
	}{
		{"/v1/chat/completions", ai.OpenAIChat, "", false},
		{"/v1/chat/completions/", ai.OpenAIChat, "", false},
		{"/chat/completions", ai.OpenAIChat, "", false},
		{"/openai/v1/chat/completions", ai.OpenAIChat, "", false},
		{"/v1beta/openai/chat/completions", ai.OpenAIChat, "", false},
		{"/openai/deployments/my%20model/chat/completions", ai.OpenAIChat, "my model", false},
		{"/v1/projects/p/locations/l/endpoints/openapi/chat/completions", ai.OpenAIChat, "", false},
		{"/v1/completions", ai.OpenAICompletions, "", false},
		{"/inference/v1/completions", ai.OpenAICompletions, "", false},
		{"/openai/deployments/d/completions", ai.OpenAICompletions, "d", false},
		{"/V1/Chat/Completions", ai.OpenAIChat, "", false},
		{"/beta/completions", ai.OpenAICompletions, "", false},
		{"/v1/fim/completions", ai.OpenAICompletions, "", false},
		{"/v1/agents/completions", ai.OpenAIChat, "", false},
		{"/video/completions", ai.OpenAICompletions, "", false}, // any prefix, because servers have many
		{"/v1/engines/davinci/completions", ai.OpenAICompletions, "davinci", false},
		{"/engines/openai/gpt-4o/completions", ai.OpenAICompletions, "openai/gpt-4o", false},
		{"/Engines/openai%2Fgpt-4o/chat/completions", ai.OpenAIChat, "openai/gpt-4o", false},
		{"/openai/deployments/azure/gpt-35/completions", ai.OpenAICompletions, "azure/gpt-35", false},
		{"/openai/Deployments/gpt-35/completions", ai.OpenAICompletions, "gpt-35", false},
		{"/OpenAI/DEPLOYMENTS/gpt-35/Chat/Completions", ai.OpenAIChat, "gpt-35", false},
		{"/openai/deployments/gpt-4/extensions/chat/completions", ai.OpenAIChat, "gpt-4", false},
		{"/v2/inference/deployments/d1/v1/chat/completions", ai.OpenAIChat, "d1", false},
		{"/engines/a/openai/deployments/b/chat/completions", ai.OpenAIChat, "a/openai/deployments/b", false},
		{"/openai/deployments/chat/completions", ai.OpenAIChat, "", false},
		{"/v1/responses", ai.OpenAIResponses, "", false},
		{"/responses", ai.OpenAIResponses, "", false},
		{"/openai/responses", ai.OpenAIResponses, "", false},
		{"/api/v3/responses", ai.OpenAIResponses, "", false},
		{"/backend-api/codex/responses", ai.OpenAIResponses, "", false},
		{"/survey/Responses", ai.OpenAIResponses, "", false},
		{"/v1/responses/compact", ai.OpenAIResponses, "", false},
		{"/v1/messages", ai.Anthropic, "", false},
		{"/anthropic/v1/messages", ai.Anthropic, "", false},
		{"/v1/projects/p/locations/l/publishers/anthropic/models/claude@1:streamRawPredict", ai.Anthropic, "claude@1", true},
		{"/v1beta/models/gemini-pro:generateContent", ai.Gemini, "gemini-pro", false},
		{"/v1beta/models/gemini-pro%3AstreamGenerateContent", ai.Gemini, "gemini-pro", true},
		{"/v1/projects/p/locations/l/publishers/google/models/gemini:streamGenerateContent", ai.Gemini, "gemini", true},
		{"/v1/projects/models/locations/l/publishers/google/models/gemini:generateContent", ai.Gemini, "gemini", false},
		{"/v1beta/Models/openai/gpt-4o:generateContent", ai.Gemini, "openai/gpt-4o", false},
		{"/v1/projects/p/locations/l/endpoints/7:generateContent", ai.Gemini, "7", false},
		{"/v1/projects/p/locations/l/Publishers/Anthropic/models/claude:rawPredict", ai.Anthropic, "claude", false},
		{"/Model/m/Converse", ai.Bedrock, "m", false},
		{"/model/us.amazon.nova-v1%3A0/converse", ai.Bedrock, "us.amazon.nova-v1:0", false},
		{"/model/us.amazon.nova-v1:0/converse-stream", ai.Bedrock, "us.amazon.nova-v1:0", true},
		{"/model/arn:aws:bedrock:eu:1:inference-profile/eu.x/converse", ai.Bedrock, "arn:aws:bedrock:eu:1:inference-profile/eu.x", false},
		{"/model/arn%3Aaws%3Abedrock%2Fx/converse", ai.Bedrock, "arn:aws:bedrock/x", false},

		{path: "/"}, {path: ""}, {path: "completions"}, {path: "/responses/x"}, {path: "/v1/threads/t/messages"},
		{path: "/v1/messages/count_tokens"}, {path: "/v1/messages/batches"}, {path: "/v1/responses/r/cancel"}, {path: "/v1/embeddings"},
		{path: "/v1beta/models/gemini:countTokens"}, {path: "/v1beta/models/:generateContent"}, {path: "/model//converse"},
		{path: "/model/m/invoke"}, {path: "/v1/code/completions/x"}, {path: "/video/completions/x"}, {path: "/%zz:generateContentx"},
	} {
		got, ok := ai.DetectFormat("POST", tt.path)
		if got != tt.want || ok != (tt.want != 0) {
			t.Errorf("POST %s: got %v, %v, want %v", tt.path, got, ok, tt.want)
		}
		if _, ok := ai.DetectFormat("GET", tt.path); ok {
			t.Errorf("GET %s: got a format", tt.path)
		}
		if tt.want == 0 {
			continue
		}
		r, err := ai.ReadRequest(got, tt.path, []byte("{}"), 2)
		if err != nil || r.Model != tt.model || r.Stream != tt.stream {
			t.Errorf("%s: got %+v, %v, want model %q, stream %v", tt.path, r, err, tt.model, tt.stream)
		}
	}
}
