// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/ai"
)

func readRequest(f ai.Format, body string) (*ai.Request, error) {
	return ai.ReadRequest(f, "", []byte(body), int64(len(body)))
}

func TestReadRequest(t *testing.T) {
	image := strings.Repeat("iVBORw0KGgo", 1000)
	for _, tt := range []struct {
		name   string
		format ai.Format
		body   string
		want   ai.Request // Text.Bytes 0: as many as characters
	}{
		{"chat", ai.OpenAIChat, `{"model":"gpt","max_tokens":50,"n":2,"stream":true,"stream_options":{"include_usage":true},"messages":[
			{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]}`,
			ai.Request{Model: "gpt", MaxTokens: 50, Choices: 2, Stream: true, AsksUsage: true, Text: ai.Text{Chars: 11}}},
		{"chat: both maxima", ai.OpenAIChat, `{"max_tokens":5,"max_completion_tokens":70,"messages":[]}`, ai.Request{MaxTokens: 70, Choices: 1}},
		{"chat: no maximum", ai.OpenAIChat, `{"max_tokens":null,"max_completion_tokens":-1,"n":0,"stream":null}`, ai.Request{Choices: 1}},
		{"chat: parts", ai.OpenAIChat, `{"messages":[{"role":"user","content":[{"type":"text","text":"Hello"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}},{"type":"input_audio","input_audio":{"data":"` + image + `","format":"wav"}},
			{"type":"file","file":{"file_data":"` + image + `"}},{"type":"unknown","unknown":{"strange":"text"}}]}]}`,
			ai.Request{Choices: 1, Text: ai.Text{Chars: 5 + 11}, Media: 3}},
		{"chat: tools", ai.OpenAIChat, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"ok"}],
			"tools":[{"a":"bcd"}]}`, ai.Request{Choices: 1, Text: ai.Text{Chars: int64(len("function" + "name" + "f" + "arguments" + "{}" + "ok" + "a" + "bcd"))}}},
		{"chat: spaces and escapes", ai.OpenAIChat, `{ "mod\u0065l" : "g\u0070t" , "messages" : [ { "content" : "]\"\\é\u00e9\ud83d\ude00" } ] }`,
			ai.Request{Model: "gpt", Choices: 1, Text: ai.Text{Chars: 6, Bytes: 3 + 2 + 2 + 4}}},
		{"completions", ai.OpenAICompletions, `{"model":"m","prompt":["ab","cd"],"suffix":"e","n":2,"best_of":5,"max_tokens":9}`,
			ai.Request{Model: "m", MaxTokens: 9, Choices: 5, Text: ai.Text{Chars: 5}}},
		{"completions: token IDs", ai.OpenAICompletions, `{"prompt":[[1, 22 ,333],[50256]]}`, ai.Request{Choices: 1, Text: ai.Text{Chars: 4 + 4 + 4 + 5}}},
		{"responses", ai.OpenAIResponses, `{"model":"m","instructions":"Be brief.","input":"Hi","max_output_tokens":30,"stream":true}`,
			ai.Request{Model: "m", MaxTokens: 30, Choices: 1, Stream: true, Text: ai.Text{Chars: 11}}},
		{"responses: items", ai.OpenAIResponses, `{"input":[{"role":"user","content":[{"type":"input_text","text":"Hi"},{"type":"input_image","image_url":"data:,` + image + `"}]},
			{"type":"function_call_output","call_id":"c","output":"done"}]}`, ai.Request{Choices: 1, Text: ai.Text{Chars: 6}, Media: 1}},
		{"anthropic", ai.Anthropic, `{"model":"claude","max_tokens":1024,"stream":false,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
			"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}},
			{"type":"document","source":{"data":"plain","type":"text","media_type":"text/plain"}},{"type":"text","text":"Hi"}]}]}`,
			ai.Request{Model: "claude", MaxTokens: 1024, Choices: 1, Text: ai.Text{Chars: 9 + 5 + 2}, Media: 1}},
		{"gemini", ai.Gemini, `{"systemInstruction":{"parts":[{"text":"Be"}]},"contents":[{"role":"user","parts":[{"text":"Hello"},{"inlineData":{"mimeType":"image/png","data":"` + image + `"}}]}],
			"generationConfig":{"maxOutputTokens":77,"candidateCount":3}}`,
			ai.Request{MaxTokens: 77, Choices: 3, Text: ai.Text{Chars: int64(len("parts" + "text" + "Be" + "Hello"))}, Media: 1}},
		{"bedrock", ai.Bedrock, `{"system":[{"text":"Be"}],"messages":[{"role":"user","content":[{"text":"Hi"},{"image":{"format":"png","source":{"bytes":"` + image + `"}}}]}],"inferenceConfig":{"maxTokens":12}}`,
			ai.Request{MaxTokens: 12, Choices: 1, Text: ai.Text{Chars: int64(len("text" + "Be" + "Hi"))}, Media: 1}},
		{"an empty object", ai.Anthropic, ` {} `, ai.Request{Choices: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !json.Valid([]byte(tt.body)) {
				t.Fatal("the test has invalid JSON")
			}
			tt.want.Format = tt.format
			if tt.want.Text.Bytes == 0 {
				tt.want.Text.Bytes = tt.want.Text.Chars
			}
			got, err := readRequest(tt.format, tt.body)
			if err != nil || fmt.Sprint(facts(got)) != fmt.Sprint(facts(&tt.want)) {
				t.Errorf("got  %+v, %v,\nwant %+v", facts(got), err, facts(&tt.want))
			}
		})
	}
}

// facts are the exported fields.
func facts(r *ai.Request) []any {
	if r == nil {
		return nil
	}
	return []any{r.Format, r.Model, r.MaxTokens, r.Choices, r.Stream, r.AsksUsage, r.Text, r.Media, r.Unparsed}
}

func TestReadRequest_Errors(t *testing.T) {
	for _, tt := range []struct {
		body string
		want ai.Kind
	}{
		{``, ai.InvalidJSON}, {`{`, ai.InvalidJSON}, {`[]`, ai.InvalidJSON}, {`"x"`, ai.InvalidJSON}, {`{"model":"m"}x`, ai.InvalidJSON},
		{`{"model":m}`, ai.InvalidJSON}, {`{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, ai.InvalidJSON},
		{`{"max_tokens":"50"}`, ai.InvalidMember}, {`{"max_tokens":1.5}`, ai.InvalidMember}, {`{"max_tokens":1e30}`, ai.InvalidMember},
		{`{"max_tokens":true}`, ai.InvalidMember}, {`{"max_tokens":{}}`, ai.InvalidMember}, {`{"max_tokens":99999999999999999999999}`, ai.InvalidMember},
		{`{"n":2.5}`, ai.InvalidMember}, {`{"model":5}`, ai.InvalidMember}, {`{"model":["m"]}`, ai.InvalidMember},
		{`{"model":"` + strings.Repeat("m", 300) + `"}`, ai.InvalidMember},
		{`{"stream":"true"}`, ai.InvalidMember}, {`{"stream":1}`, ai.InvalidMember},
		{`{"model":"a","model":"b"}`, ai.InvalidMember}, {`{"model":"a","\u006dodel":"b"}`, ai.InvalidMember},
		{`{"max_tokens":1,"max_tokens":100000}`, ai.InvalidMember}, {`{"stream":true,"stream":false}`, ai.InvalidMember},
	} {
		_, err := readRequest(ai.OpenAIChat, tt.body)
		var e *ai.Error
		if !errors.As(err, &e) || e.Kind != tt.want || !strings.HasPrefix(err.Error(), "ai: ") {
			t.Errorf("%.60s: got %v, want %v", tt.body, err, tt.want)
		}
	}
	for _, f := range []ai.Format{0, 99} {
		if _, err := readRequest(f, "{}"); err == nil {
			t.Errorf("format %d: got no error", f)
		}
	}
}

// TestReadRequest_Long checks that a request above the bound is not free.
func TestReadRequest_Long(t *testing.T) {
	head := `{"model":"gpt","max_tokens":9,"messages":[{"content":"`
	for _, tt := range []struct {
		name   string
		body   int
		length int64
	}{
		{"the whole body", ai.MaxRequestBytes + 10, ai.MaxRequestBytes + 10},
		{"its first bytes", ai.MaxRequestBytes, 50 << 20},
		{"a short part", 1000, 50 << 20},
		{"a length that is too small", ai.MaxRequestBytes + 10, 0},
	} {
		body := []byte(head + strings.Repeat("x", tt.body-len(head)))
		r, err := ai.ReadRequest(ai.OpenAIChat, "", body, tt.length)
		want := max(tt.length, int64(tt.body))
		if err != nil || !r.Unparsed || r.Model != "gpt" || r.MaxTokens != 9 || r.Text.Chars != want || ai.SimpleWord(r) != (want+3)/4 {
			t.Errorf("%s: got %+v, %v", tt.name, facts(r), err)
		}
	}
}

// TestFindError compares the check of requests with encoding/json.
func TestFindError(t *testing.T) {
	for _, text := range []string{
		"", " ", "{}", "[]", "{} ", " [ ] ", "{}}", "[}", "{]", "[1,]", "[,1]", "{,}", `{"a":1,}`, `{"a"}`, `{"a":}`, `{"a" : 1 , "b":[{}]}`, `{a:1}`, `{"a":1 "b":2}`, "[1 2]", "[", "{", `{"a"`, `{"a":`, `{"a":1`,
		"0", "-0", "01", "-", "+1", "1.", ".5", "1.5", "1e", "1e+", "1e+5", "1E-5", "-1.25e10", "1a", "true", "tru", "truex", "false", "null", "nul", "NaN",
		`"`, `"a`, `"a"`, `"a"b`, `"\n\"\\\/\b\f\r\t\u00aF"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\`, "\"\x1f\"", "\"\x7f\"", "\"\xff\xfe\"", "\"12345678\x0112345678\"", `"1234567\"`, `"12345678"`, "\"日本語日本語\"",
		"\ufeff{}", "{}\x00", "[[[[]]]]", `{"a":{"b":{"c":[]}}}`,
	} {
		if got, want := ai.FindError([]byte(text)) < 0, json.Valid([]byte(text)); got != want {
			t.Errorf("%q: got valid %v, want %v", text, got, want)
		}
	}
}

func TestRequest_Completion(t *testing.T) {
	for _, tt := range []struct {
		body string
		want int64
	}{
		{`{}`, 1000}, {`{"n":3}`, 3000}, {`{"max_tokens":5,"n":3}`, 15}, {`{"max_tokens":0}`, 1000}, {`{"max_tokens":-5}`, 1000},
		{`{"max_tokens":1000000000,"n":1000000000}`, ai.MaxTokens},
	} {
		r, err := readRequest(ai.OpenAIChat, tt.body)
		if err != nil || r.Completion(1000) != tt.want {
			t.Errorf("%s: got %d, %v, want %d", tt.body, r.Completion(1000), err, tt.want)
		}
	}
}

// TestReadRequest_Model checks that a body cannot hide the model that the path names.
func TestReadRequest_Model(t *testing.T) {
	for _, tt := range []struct {
		format     ai.Format
		path, want string
	}{
		{ai.OpenAIChat, "/v1/chat/completions", "cheap"},
		{ai.OpenAIChat, "/openai/deployments/large/chat/completions", "large"},
		{ai.Gemini, "/v1beta/models/large:generateContent", "large"},
		{ai.Bedrock, "/model/large/converse", "large"},
	} {
		body := []byte(`{"model":"cheap"}`)
		if r, err := ai.ReadRequest(tt.format, tt.path, body, int64(len(body))); err != nil || r.Model != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.path, r.Model, err, tt.want)
		}
	}
	for _, tt := range []struct {
		path, body string
		ok         bool
	}{
		{"/engines/large/chat/completions", `{"model":"cheap"}`, false},
		{"/v1/engines/large/completions", `{"model":"cheap"}`, false},
		{"/inference/deployments/large/chat/completions", `{"model":"cheap"}`, false},
		{"/engines/large/completions", `{"model":"Large"}`, false},
		{"/engines/large/chat/completions", `{"model":"large"}`, true},
		{"/engines/large/chat/completions", `{"model":""}`, true},
		{"/engines/large/chat/completions", `{}`, true},
	} {
		f, _ := ai.DetectFormat("POST", tt.path)
		r, err := ai.ReadRequest(f, tt.path, []byte(tt.body), int64(len(tt.body)))
		if (err == nil) != tt.ok || tt.ok && r.Model != "large" {
			t.Errorf("%s with %s: got %+v, %v, want a request: %v", tt.path, tt.body, r, err, tt.ok)
		}
	}
}

func TestSimpleWord(t *testing.T) {
	for _, tt := range []struct {
		body string
		want int64
	}{
		{`{"messages":[]}`, 0},
		{`{"messages":[{"role":"user","content":"a"}]}`, 1},
		{`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 400) + `"}]}`, 100},
		{`{"messages": [{"role": "user", "content": "` + strings.Repeat("x", 401) + `"}]}`, 101},
		{`{"messages":[{"content":"` + strings.Repeat("ж", 80) + `"}]}`, 50},
		{`{"messages":[{"content":"` + strings.Repeat("語", 80) + `"}]}`, 80},
		{`{"messages":[{"content":"` + strings.Repeat("😀", 80) + `"}]}`, 110},
		{`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]}`, ai.MediaTokens},
	} {
		r, err := readRequest(ai.OpenAIChat, tt.body)
		if err != nil || ai.SimpleWord(r) != tt.want {
			t.Errorf("%.60s: got %d, %v, want %d", tt.body, ai.SimpleWord(r), err, tt.want)
		}
	}
}

func TestRequest_AppendText(t *testing.T) {
	r, err := readRequest(ai.Anthropic, `{"system":"A\n","messages":[{"role":"user","content":[{"type":"text","text":"\ud83d\ude00é"},
		{"type":"image","source":{"type":"base64","data":"iVBORw0KGgo"}},{"type":"document","source":{"type":"text","data":"B"}},{"text":"\ud83dC"}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	got := string(r.AppendText([]byte(">")))
	if want := ">A\n😀éB\uFFFDC"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := int64(len(got) - 1); r.Text.Bytes != n || r.Text.Chars != int64(len([]rune(got))-1) {
		t.Errorf("got %+v, but the text has %d bytes", r.Text, n)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		ai.Gemini.String(): "gemini", ai.Format(0).String(): "", ai.Format(99).String(): "", ai.PromptSide.String(): "prompt",
		ai.CompletionSide.String(): "completion", ai.InvalidUsage.String(): "invalid usage", ai.Kind(99).String(): "error",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAskForUsage(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"stream":true,"x":1.50,"y":[1, 2]}`, `{"stream":true,"x":1.50,"y":[1, 2],"stream_options":{"include_usage":true}}`},
		{"{ \"stream\" : true \n}\n", "{ \"stream\" : true \n,\"stream_options\":{\"include_usage\":true}}\n"},
		{`{"stream":true,"stream_options":null}`, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{`{"stream":true,"stream_options":{ }}`, `{"stream":true,"stream_options":{ "include_usage":true}}`},
		{`{"stream_options":{"include_obfuscation":false},"stream":true}`, `{"stream_options":{"include_usage":true,"include_obfuscation":false},"stream":true}`},
		{`{"stream":true,"stream_options":{"include_usage":false}}`, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{`{"stream":true,"stream_options":{"a":{"include_usage":true},"include_usage":null}}`, `{"stream":true,"stream_options":{"a":{"include_usage":true},"include_usage":true}}`},
		{`{"str\u0065am":true}`, `{"str\u0065am":true,"stream_options":{"include_usage":true}}`},
		{`{"stream":true,"stream_options":{"include_usage":true}}`, ""},
		{`{"stream":false}`, ""}, {`{}`, ""}, {`{"messages":[{"stream":true}]}`, ""}, {`{"stream":true`, ""}, {``, ""}, {`[]`, ""}, {`{"a"}`, ""},
	} {
		got, differs := ai.AskForUsage([]byte(tt.body))
		want := tt.want
		if want == "" {
			want = tt.body
		}
		if string(got) != want || differs != (tt.want != "") {
			t.Errorf("%s: got %s, %v, want %s", tt.body, got, differs, want)
		}
		if again, differs := ai.AskForUsage(got); differs {
			t.Errorf("%s: asked twice: %s", tt.body, again)
		}
	}
}
