// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/metehq/mete/internal/parse"
)

// The attributes of requests to language models. HTTP adapters read them from the body; other callers supply them.
const (
	aiModel       = "model"                  // as the request names it
	aiMaxTokens   = "max_tokens"             // the most completion tokens that the request asks for, all choices together
	aiChoices     = "choices"                // the completions that the request asks for
	aiPrompt      = "prompt_tokens"          // the estimate of the prompt: a token per four characters
	aiTiktoken    = "prompt_tokens/tiktoken" // the estimate by OpenAI's tokenizer
	aiLearned     = "prompt_tokens/learned"  // the estimate by the ratio that earlier requests of the model had
	aiFingerprint = "fingerprint"            // a hash of the method, the path, the query and the body
)

var aiNames = []string{aiModel, aiPrompt, aiTiktoken, aiLearned, aiMaxTokens, aiChoices, aiFingerprint}

// AIAttributes returns the names of the attributes of requests to language models, such as ai:model.
func AIAttributes() (names []string) {
	for _, name := range aiNames {
		names = append(names, "ai:"+name)
	}
	return names
}

func parseAI(s, name string) (Attribute, *attributeError) {
	if !slices.Contains(aiNames, name) {
		return Attribute{}, &attributeError{s, "unknown attribute of a request to a language model", "write " + parse.Enumerate(AIAttributes(), "or")}
	}
	return aiAttribute(name), nil
}

func aiAttribute(name string) Attribute {
	return Attribute{Source: SourceAI, Name: name, text: "ai:" + name}
}
