// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"net/http"
	"net/url"
	"strings"
)

// A Format is the wire format of a provider's API. The zero value is no format.
type Format uint8

// The formats.
const (
	OpenAIChat        Format = iota + 1 // POST /v1/chat/completions, also of compatible servers
	OpenAICompletions                   // POST /v1/completions
	OpenAIResponses                     // POST /v1/responses
	Anthropic                           // POST /v1/messages
	Gemini                              // POST /v1beta/models/{model}:generateContent
	Bedrock                             // POST /model/{model}/converse
)

var formatNames = [...]string{"", "openai_chat", "openai_completions", "openai_responses", "anthropic", "gemini", "bedrock"}

// String returns a name such as "openai_chat", or "" for no format.
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return ""
}

func (f Format) isOpenAI() bool { return f >= OpenAIChat && f <= OpenAIResponses }

// DetectFormat returns the format of a request from its method and path. Only the end of the path counts, so that it may have
// any prefix, such as /openai/v1 or /v1/projects/p/locations/l/publishers/google. It may be escaped or not, and in any case, as
// some servers accept it.
func DetectFormat(method, path string) (Format, bool) {
	if method != http.MethodPost || !strings.HasPrefix(path, "/") {
		return 0, false
	}
	f, _ := parsePath(path)
	return f, f != 0
}

// A target has the facts of a request that its path can contain.
type target struct {
	model  string
	stream bool
	sole   bool // the body must not name another model: servers differ in which one they use
}

// parsePath returns 0 for a path of no format.
func parsePath(path string) (Format, target) {
	dir, last := splitLast(strings.TrimSuffix(path, "/"))
	above, parent := splitLast(dir)
	parent = strings.ToLower(parent)
	switch strings.ToLower(last) {
	case "completions":
		switch parent {
		case "chat":
			return OpenAIChat, parseDeployment(above)
		case "agents": // of Mistral
			return OpenAIChat, target{}
		}
		return OpenAICompletions, parseDeployment(dir)
	case "responses":
		return OpenAIResponses, target{}
	case "compact": // it shortens a conversation with a model
		if parent == "responses" {
			return OpenAIResponses, target{}
		}
	case "messages":
		if isRoot(parent) {
			return Anthropic, target{}
		}
	case "converse", "converse-stream":
		const marker = "/model/"
		if i := indexFold(dir, marker); i >= 0 && len(dir) > i+len(marker) {
			return Bedrock, target{model: unescape(dir[i+len(marker):]), stream: strings.EqualFold(last, "converse-stream")}
		}
	}
	return parseAction(dir, last)
}

// parseAction reads Google's paths, which end with models/{model}:{action}. Vertex AI serves Anthropic's format, too. The model
// can have slashes in the paths of LiteLLM.
func parseAction(dir, last string) (Format, target) {
	model, action, ok := strings.Cut(unescape(last), ":")
	if !ok || model == "" {
		return 0, target{}
	}
	const anthropic = "/publishers/anthropic/models"
	switch action = strings.ToLower(action); action {
	case "generatecontent", "streamgeneratecontent":
		return Gemini, target{model: afterModels(dir) + model, stream: action == "streamgeneratecontent"}
	case "rawpredict", "streamrawpredict":
		if at := len(dir) - len(anthropic); at >= 0 && strings.EqualFold(dir[at:], anthropic) {
			return Anthropic, target{model: model, stream: action == "streamrawpredict"}
		}
	}
	return 0, target{}
}

// afterModels returns the segments after models/, with a slash at their end.
func afterModels(dir string) string {
	const marker = "/models/"
	for dir += "/"; ; {
		i := indexFold(dir, marker)
		if i < 0 {
			return ""
		}
		if dir = dir[i+len(marker)-1:]; indexFold(dir, marker) < 0 {
			return unescape(dir[1:])
		}
	}
}

// splitLast cuts the last segment off a path.
func splitLast(path string) (dir, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// isRoot reports whether a segment can precede the name of an API: nothing, a version, or "openai".
func isRoot(segment string) bool {
	if segment == "" || segment == "openai" {
		return true
	}
	return len(segment) > 1 && segment[0] == 'v' && segment[1] >= '0' && segment[1] <= '9'
}

// parseDeployment reads {model} of .../openai/deployments/{model} (Azure and LiteLLM), .../engines/{model} (LiteLLM and OpenAI's
// first API) and .../deployments/{model} (others). It can have slashes. A version or extensions can follow.
func parseDeployment(dir string) target {
	const deployments, engines, azure = "/deployments/", "/engines/", "/openai"
	at, marker := indexFold(dir, deployments), deployments
	if i := indexFold(dir, engines); i >= 0 && (at < 0 || i < at) {
		at, marker = i, engines
	}
	if at < 0 {
		return target{}
	}
	name := dir[at+len(marker):]
	for above, last := splitLast(name); above != "" && (isRoot(strings.ToLower(last)) || strings.EqualFold(last, "extensions")); above, last = splitLast(name) {
		name = above
	}
	known := marker == deployments && at >= len(azure) && strings.EqualFold(dir[at-len(azure):at], azure)
	return target{model: unescape(name), sole: !known}
}

// indexFold is [strings.Index] for ASCII letters in any case.
func indexFold(s, sub string) int {
	for i := 0; i+len(sub) <= len(s); i++ {
		if s[i] == sub[0] && strings.EqualFold(s[i:i+len(sub)], sub) {
			return i
		}
	}
	return -1
}

func unescape(segment string) string {
	if s, err := url.PathUnescape(segment); err == nil {
		return s
	}
	return segment
}
