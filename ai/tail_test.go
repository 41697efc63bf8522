// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/ai"
)

// TestTail checks members behind the beginning of a body, which ends at the first |.
func TestTail(t *testing.T) {
	const late, twice, spelling, invalid, ok = "is behind the first", "occurs twice", "some servers read", "it is invalid at byte", ""
	for _, tt := range []struct {
		format     ai.Format
		body, want string
	}{
		{ai.OpenAIChat, `{"model":"m","messages":[|]}`, ok},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"temperature":1,"stream":true,"stream_options":{"include_usage":true}}`, ok},
		{ai.OpenAIChat, `{"model":"m","messages":[|{"model":"x","max_tokens":1,"content":"\",\"n\":5,"}],"max_tokens":null}`, ok},
		{ai.OpenAIChat, `{"model":"m","max_tokens":5,"messages":"|\"}\\"}  `, ok},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"model":"big"}`, twice},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"mod\u0065l":"big"}`, twice},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"model":null}`, twice},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"Model":"big"}`, spelling},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"model\u0000":"big"}`, spelling},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"model\ud800":"big"}`, spelling},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"\u017ftream":true}`, spelling},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"` + strings.Repeat("m", 300) + `":1}`, "more than 256 bytes"},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"messages":[]}`, twice},
		{ai.OpenAIChat, `{"model":"m","stream":false,"messages":[|],"stream":true}`, twice},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"max_tokens":1}`, late},
		{ai.OpenAIChat, `{"model":"m","max_tokens":|100000}`, late},
		{ai.OpenAIChat, `{"model":"m","max_tokens":1|00000}`, late},
		{ai.OpenAIChat, `{"model":"m","max_tokens":1,"messages":[|],"max_completion_tokens":1}`, late},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"n":2}`, late},
		{ai.OpenAIChat, `{"messages":[|],"model":"m"}`, late},
		{ai.OpenAIChat, `{"model":"m|1"}`, late},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"max_tokens":"1"}`, "must be an integer"},
		{ai.OpenAIChat, `{"model":"m","messages":[|],"stream":1}`, "must be true or false"},
		{ai.OpenAIChat, `{"model":"m","messages":[|`, invalid},
		{ai.OpenAIChat, `{"model":"m","messages":"|`, invalid},
		{ai.OpenAIChat, `{"model":"m","messages":[|]}{"model":"big"}`, invalid},
		{ai.OpenAIChat, `{"model":"m","messages":[|]}//`, invalid},
		{ai.OpenAIChat, `{"model":"m","messages":[|],/*"*/"a":1}`, invalid},
		{ai.OpenAIChat, "{\"model\":\"m\",\"messages\":\"|\x00\"}", invalid},
		{ai.OpenAICompletions, `{"model":"m","prompt":"|","best_of":2}`, late},
		{ai.OpenAIResponses, `{"model":"m","input":"|","max_output_tokens":2}`, late},
		{ai.OpenAIResponses, `{"model":"m","input":"|","background":true}`, "background must be false"},
		{ai.OpenAIResponses, `{"model":"m","input":"|","background":false}`, ok},
		{ai.Anthropic, `{"model":"m","max_tokens":5,"messages":[|],"max_tokens":7}`, twice},
		{ai.Gemini, `{"contents":[|],"generationConfig":{"temperature":1}}`, ok},
		{ai.Gemini, `{"contents":[|],"generationConfig":{"maxOutputTokens":1}}`, late},
		{ai.Gemini, `{"generationConfig":{"maxOutputTokens":1},"contents":[|],"generationConfig":{}}`, twice},
		{ai.Gemini, `{"generationConfig":{"maxOutputTokens":1},"contents":[|],"generation_config":{}}`, twice},
		{ai.Gemini, `{"contents":[|],"generationConfig":{"MaxOutputTokens":1}}`, spelling},
		{ai.Bedrock, `{"messages":[|],"inferenceConfig":{"maxTokens":1}}`, late},
	} {
		first, rest, _ := strings.Cut(tt.body, "|")
		for _, size := range []int{1, 2, 7, 1000} {
			err := readTail(tt.format, first+rest, len(first), size)
			if e, isError := errors.AsType[*ai.Error](err); (err == nil) != (tt.want == ok) || err != nil && (!isError || !strings.Contains(e.Error(), tt.want)) {
				t.Errorf("%s in pieces of %d: got %v, want %q", tt.body, size, err, tt.want)
			}
		}
	}
}

// readTail reads a body whose beginning has some of its bytes, and checks the rest in pieces.
func readTail(f ai.Format, body string, first, size int) error {
	path := map[ai.Format]string{ai.Gemini: "/v1beta/models/g:generateContent", ai.Bedrock: "/model/b/converse"}[f]
	r, err := ai.ReadLong(f, path, []byte(body), first)
	if err != nil {
		return err
	}
	tail := r.Tail()
	for piece := range slices.Chunk([]byte(body[first:]), size) {
		if err := tail.Check(piece); err != nil {
			if again := tail.Check([]byte(" ")); again != err {
				return fmt.Errorf("got %v, and then %v", err, again)
			}
			return err
		}
	}
	return tail.End()
}

// TestTail_Bound checks where the rest begins.
func TestTail_Bound(t *testing.T) {
	head := `{"model":"m","messages":"`
	body := []byte(head + strings.Repeat("x", ai.MaxRequestBytes-len(head)) + `","n":2}`)
	r, err := ai.ReadRequest(ai.OpenAIChat, "", body, int64(len(body)))
	if err != nil || r.Choices != 1 {
		t.Fatal(r, err)
	}
	if err := r.Tail().Check(body[ai.MaxRequestBytes:]); err == nil || !strings.Contains(err.Error(), "the number of choices is behind the first 1048576 bytes") {
		t.Errorf("got %v", err)
	}
	if r, err := readRequest(ai.OpenAIChat, `{}`); err != nil || r.Tail() != nil {
		t.Errorf("a short body has a tail: %v, %v", r, err)
	}
}

// TestReadRequest_Spelling checks short bodies with members that some parser reads differently.
func TestReadRequest_Spelling(t *testing.T) {
	for _, tt := range []struct {
		format ai.Format
		body   string
	}{
		{ai.OpenAIChat, `{"model":"a","Model":"b"}`}, {ai.OpenAIChat, `{"model":"a","MAX_TOKENS":9}`}, {ai.OpenAIChat, `{"model":"a","model":null}`},
		{ai.OpenAIChat, `{"max_tokens":5,"max_tokens":null}`}, {ai.OpenAIChat, `{"Messages":"hidden"}`}, {ai.OpenAIChat, `{"messages":[],"messages":[]}`},
		{ai.OpenAIChat, `{"model":"a","model\u0000x":1,"mo\u0000del":"b"}`}, {ai.OpenAIChat, "{\"model\xff\":\"b\"}"}, {ai.OpenAIChat, `{"\ufeffmodel":"b"}`},
		{ai.OpenAIChat, "\ufeff{}"}, {ai.OpenAIChat, "\xff\xfe{\x00}\x00"}, {ai.OpenAIChat, "\x00{\x00}"}, {ai.OpenAIChat, "{\x00}\x00"},
		{ai.OpenAIChat, `{"stream_options":{"include_usage":true,"Include_Usage":false}}`},
		{ai.Gemini, `{"generationConfig":{"maxOutputTokens":1},"generationConfig":{}}`}, {ai.Gemini, `{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":null}}`},
		{ai.OpenAIResponses, `{"background":"true"}`},
	} {
		if r, err := readRequest(tt.format, tt.body); err == nil {
			t.Errorf("%q: got %v", tt.body, facts(r))
		}
	}
	for _, body := range []string{`{"models":["a"],"N1":1,"tempErature":1,"":0,"max-tokens":1,"模型":1,"metadata":{"model":1,"Model":2}}`, `{"messages":[{"content":"a","Content":"b","content":"c"}]}`} {
		if _, err := readRequest(ai.OpenAIChat, body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// FuzzTail compares bodies that are accepted with encoding/json, which takes the last member and ignores the case.
func FuzzTail(f *testing.F) {
	for _, body := range []string{`{"model":"m","messages":[{"content":"\\\""}],"stream":true}`, `{"model":"m","messages":[],"Model":"x"}`, `{"model":"m","max_tokens":1e2,"n":2}`,
		`{"model":"m","x":"\ud83d\ude00","max_completion_tokens":7}`, `{"x":[[{}]],"n":-1.0e0,"model":"\u006d"}`} {
		for first := range 4 {
			f.Add(body, uint16(len(body)*first/3), uint8(first))
		}
	}
	f.Fuzz(func(t *testing.T, body string, at uint16, size uint8) {
		first := min(int(at), len(body))
		if strings.Count(body, "[")+strings.Count(body, "{") > 1000 {
			return
		}
		err := readTail(ai.OpenAIChat, body, first, int(size)+1)
		if whole := readTail(ai.OpenAIChat, body, first, 1<<20); (err == nil) != (whole == nil) {
			t.Errorf("%q: got %v whole and %v in pieces", body, whole, err)
		}
		var e *ai.Error
		isObject := json.Valid([]byte(body)) && bytes.HasPrefix(bytes.TrimLeft([]byte(body), " \t\r\n"), []byte("{"))
		if errors.As(err, &e) && e.Kind == ai.InvalidJSON && isObject && first > 0 && strings.Contains(body[:first], "{") || err == nil && !isObject {
			t.Errorf("%q, %d: got %v, but valid is %v", body, first, err, isObject)
		}
		if err != nil {
			return
		}
		r, _ := ai.ReadLong(ai.OpenAIChat, "", []byte(body), first)
		var want struct {
			Model      any
			MaxTokens  any `json:"max_tokens"`
			Completion any `json:"max_completion_tokens"`
			N          any
		}
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		number := func(v any) int64 {
			n, _ := v.(float64)
			return int64(max(n, 0))
		}
		model, _ := want.Model.(string)
		if got := strings.ToValidUTF8(r.Model, "\uFFFD"); got != model && !strings.Contains(model, "\uFFFD") {
			t.Errorf("%q: got model %q, want %q", body, got, model)
		}
		if most := max(number(want.MaxTokens), number(want.Completion)); r.MaxTokens != most || r.Choices != max(1, number(want.N)) {
			t.Errorf("%q: got %v, want %d tokens and %d choices", body, facts(r), most, number(want.N))
		}
	})
}

func BenchmarkTail(b *testing.B) {
	head := `{"model":"m","messages":"`
	first := []byte(head + strings.Repeat("x", ai.MaxRequestBytes-len(head)))
	for name, rest := range map[string]string{
		"text":   strings.Repeat("A line of a prompt.\\n", 1<<20/21),
		"image":  strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 1<<20/24),
		"tokens": `","logit_bias":{"a":[` + strings.Repeat("50256, ", 1<<20/7),
		"tools":  `","tools":[` + strings.Repeat(`{"type":"function","function":{"name":"f","strict":true,"n":1}},`, 1<<20/64),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(rest)))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				r, err := ai.ReadRequest(ai.OpenAIChat, "", first, int64(len(first)+len(rest)))
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				for piece := range slices.Chunk([]byte(rest), pieceBytes) {
					if err := r.Tail().Check(piece); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
