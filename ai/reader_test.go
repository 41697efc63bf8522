// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/ai"
)

// A vector is a response and what a reader must find in it.
type vector struct {
	name, content string
	format        ai.Format
	body          []byte
	want          outcome
}

// An outcome is a [ai.Result] that can be compared.
type outcome struct {
	ai.Usage
	State         ai.State
	Text          int64
	Bytes         int64 // of the text, 0 if they are as many
	Ended, Failed bool
	Err           ai.Kind
}

func outcomeOf(r ai.Result) outcome {
	o := outcome{Usage: r.Usage, State: r.State, Text: r.Text.Chars, Ended: r.Ended, Failed: r.Failed}
	if r.Text.Bytes != r.Text.Chars {
		o.Bytes = r.Text.Bytes
	}
	if e, ok := r.Err.(*ai.Error); ok {
		o.Err = e.Kind
	}
	return o
}

var formats = []ai.Format{ai.OpenAIChat, ai.OpenAICompletions, ai.OpenAIResponses, ai.Anthropic, ai.Gemini, ai.Bedrock}

// readVectors reads testdata.
func readVectors(tb testing.TB) []vector {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		tb.Fatal("no vectors", err)
	}
	var all []vector
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		_, rest, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n== ")
		for section := range strings.SplitSeq(rest, "\n== ") {
			all = append(all, parseVector(tb, file, section))
		}
	}
	return all
}

func parseVector(tb testing.TB, file, section string) vector {
	lines := strings.SplitN(section, "\n", 5)
	if len(lines) != 5 {
		tb.Fatalf("%s: %q has no body", file, lines[0])
	}
	v := vector{name: lines[0], content: strings.TrimPrefix(lines[2], "content: ")}
	for _, f := range formats {
		if "format: "+f.String() == lines[1] {
			v.format = f
		}
	}
	for _, word := range strings.Fields(strings.TrimPrefix(lines[3], "want: ")) {
		name, value, _ := strings.Cut(word, "=")
		var n int64
		fmt.Sscan(value, &n)
		switch name {
		case "input":
			v.want.Input = n
		case "cached":
			v.want.Cached = n
		case "written":
			v.want.CacheWrite = n
		case "output":
			v.want.Output = n
		case "reasoning":
			v.want.Reasoning = n
		case "text":
			v.want.Text = n
		case "bytes":
			v.want.Bytes = n
		case "ended":
			v.want.Ended = true
		case "failed":
			v.want.Failed = true
		case "error":
			v.want.Err = ai.InvalidUsage
		case "state":
			v.want.State = map[string]ai.State{"none": ai.NoUsage, "partial": ai.PartialUsage, "final": ai.FinalUsage}[value]
		default:
			tb.Fatalf("%s: %s: unknown word %q", file, v.name, word)
		}
	}
	v.body = []byte(lines[4])
	if strings.HasSuffix(v.content, "eventstream") {
		v.body = nil
		for line := range strings.Lines(lines[4]) {
			if event, payload, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				v.body = append(v.body, frame(event, payload)...)
			}
		}
	}
	return v
}

// readPieces reads pieces with a new reader.
func readPieces(v vector, coding string, pieces ...[]byte) outcome {
	r := ai.NewReader(v.format, v.content, coding)
	for _, p := range pieces {
		r.Write(p)
	}
	r.Close()
	return outcomeOf(r.Result())
}

// TestReader reads every vector whole, byte by byte, cut at every place, and compressed.
func TestReader(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.format.String()+"/"+v.name, func(t *testing.T) {
			if got := readPieces(v, "", v.body); got != v.want {
				t.Fatalf("whole: got %+v, want %+v", got, v.want)
			}
			single := bytes.Split(v.body, nil)
			if got := readPieces(v, "identity", single...); got != v.want {
				t.Errorf("byte by byte: got %+v, want %+v", got, v.want)
			}
			for i := range v.body {
				if got := readPieces(v, "", v.body[:i], v.body[i:]); got != v.want {
					t.Fatalf("cut at byte %d: got %+v, want %+v", i, got, v.want)
				}
			}
			packed := compress(t, v.body)
			if got := readPieces(v, "gzip", packed); got != v.want {
				t.Errorf("gzip: got %+v, want %+v", got, v.want)
			}
			if got := readPieces(v, "GZIP", bytes.Split(packed, nil)...); got != v.want {
				t.Errorf("gzip byte by byte: got %+v, want %+v", got, v.want)
			}
		})
	}
}

// TestReader_LineEnds reads every stream with each line end that the standard permits.
func TestReader_LineEnds(t *testing.T) {
	for _, v := range readVectors(t) {
		if !strings.HasPrefix(v.content, "text/event-stream") {
			continue
		}
		for _, end := range []string{"\r\n", "\r"} {
			body := bytes.ReplaceAll(v.body, []byte("\n"), []byte(end))
			for i := range body {
				if got := readPieces(v, "", body[:i], body[i:]); got != v.want {
					t.Fatalf("%s: line end %q, cut at byte %d: got %+v, want %+v", v.name, end, i, got, v.want)
				}
			}
		}
	}
}

// TestReader_ContentType checks that the body decides between JSON and events if the header field does not.
func TestReader_ContentType(t *testing.T) {
	for _, v := range readVectors(t) {
		if strings.HasSuffix(v.content, "eventstream") {
			continue
		}
		for _, content := range []string{"", "text/plain"} {
			v.content = content
			if got := readPieces(v, "", v.body); got != v.want {
				t.Errorf("%s: with content type %q: got %+v, want %+v", v.name, content, got, v.want)
			}
		}
	}
}

func compress(tb testing.TB, body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestReader_GzipFlush checks that a flushed event counts at once, and that the end of a cut stream counts at Close.
func TestReader_GzipFlush(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	r := ai.NewReader(ai.OpenAIChat, "text/event-stream", "gzip")
	for i := range int64(3) {
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"Hello"}}]}`+"\n\n")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		r.Write(b.Bytes())
		b.Reset()
		if got := r.Result().Text.Chars; got != 5*(i+1) {
			t.Errorf("after event %d: got %d characters, want %d", i+1, got, 5*(i+1))
		}
	}
	fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"Hello"}}]}`+"\n\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r.Write(b.Bytes()[:b.Len()-9]) // without the checksum and the last byte
	r.Close()
	if got := r.Result(); got.Text.Chars < 15 || got.Err != nil {
		t.Errorf("after the cut: got %+v", got)
	}
}

// TestReader_Opaque reads bodies that are no text: only their bytes count.
func TestReader_Opaque(t *testing.T) {
	broken := compress(t, []byte(`{"usage":{"prompt_tokens":1}}`))
	broken[12] ^= 0xFF
	crc := frame("metadata", `{"usage":{"inputTokens":1,"outputTokens":1}}`)
	crc[len(crc)-1] ^= 1
	prelude := frame("metadata", `{"usage":{"inputTokens":1,"outputTokens":1}}`)
	prelude[8] ^= 1
	// The checksum of this prelude is correct.
	long := binary.BigEndian.AppendUint64(nil, 0xFFFFFFFF_00000000)
	long = append(binary.BigEndian.AppendUint32(long, crc32.ChecksumIEEE(long)), "rest"...)
	short := binary.BigEndian.AppendUint64(nil, 20<<32|5)
	short = append(binary.BigEndian.AppendUint32(short, crc32.ChecksumIEEE(short)), "rest"...)
	for _, tt := range []struct {
		name, content, coding string
		body                  []byte
		want                  ai.Kind
	}{
		{"another coding", "text/event-stream", "br", []byte("data: {}\n\n"), ai.UnknownEncoding},
		{"two codings", "application/json", "gzip, br", []byte("{}"), ai.UnknownEncoding},
		{"broken gzip", "application/json", "gzip", broken, ai.InvalidEncoding},
		{"no gzip", "application/json", "gzip", []byte("plain text"), ai.InvalidEncoding},
		{"checksum of a frame", "application/vnd.amazon.eventstream", "", crc, ai.InvalidFrame},
		{"checksum of a prelude", "application/vnd.amazon.eventstream", "", prelude, ai.InvalidFrame},
		{"a long frame", "application/vnd.amazon.eventstream", "", long, ai.InvalidFrame},
		{"headers longer than the frame", "application/vnd.amazon.eventstream", "", short, ai.InvalidFrame},
	} {
		for _, n := range []int{1, len(tt.body)} {
			r := ai.NewReader(ai.Bedrock, tt.content, tt.coding)
			for piece := range piecesOf(tt.body, n) {
				if m, err := r.Write(piece); m != len(piece) || err != nil {
					t.Errorf("%s: Write returned %d, %v", tt.name, m, err)
				}
			}
			r.Write([]byte("more"))
			r.Close()
			got := r.Result()
			if e, ok := got.Err.(*ai.Error); !ok || e.Kind != tt.want || got.State != ai.NoUsage {
				t.Errorf("%s in pieces of %d: got %+v", tt.name, n, got)
			}
			if tt.coding == "br" && got.Bytes != int64(len(tt.body)+len("more")) {
				t.Errorf("%s: got %d bytes, want %d", tt.name, got.Bytes, len(tt.body)+len("more"))
			}
		}
	}
	r := ai.NewReader(0, "application/json", "")
	r.Write([]byte(`{"usage":{}}`))
	if got := r.Result(); got.Err == nil {
		t.Errorf("no format: got %+v", got)
	}
}

// TestReader_Exception reads an exception of Bedrock within a stream.
func TestReader_Exception(t *testing.T) {
	body := append(frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello"}}`),
		frameOf(`{"message":"Too many tokens"}`, ":exception-type", "throttlingException", ":message-type", "exception")...)
	got := readPieces(vector{format: ai.Bedrock, content: "application/vnd.amazon.eventstream"}, "", body)
	if want := (outcome{Text: 5, Failed: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestReader_LongBody reads usage behind a text of 8 MiB.
func TestReader_LongBody(t *testing.T) {
	v := vector{format: ai.OpenAIChat, content: "application/json"}
	text := strings.Repeat("abcdefgh", 1<<20)
	got := readPieces(v, "", []byte(`{"choices":[{"message":{"content":"`), []byte(text), []byte(`"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`))
	if want := (outcome{Usage: ai.Usage{Input: 1, Output: 2}, State: ai.FinalUsage, Text: 8 << 20, Ended: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestReader_Nesting reads containers deeper than any limit.
func TestReader_Nesting(t *testing.T) {
	v := vector{format: ai.OpenAIChat, content: "application/json"}
	for _, brackets := range []string{"[]", "{}"} {
		opening := strings.Repeat(string(brackets[0])+`"a":`, 100_000)
		closing := strings.Repeat(string(brackets[1]), 100_000)
		body := `{"choices":` + opening + "0" + closing + `,"usage":{"prompt_tokens":1,"completion_tokens":2}}`
		if got := readPieces(v, "", []byte(body)); got.Input != 1 || got.Output != 2 {
			t.Errorf("%s: got %+v", brackets, got)
		}
	}
}

// TestReader_BrokenEnd reads a stream that breaks behind its final usage.
func TestReader_BrokenEnd(t *testing.T) {
	body := append(frame("metadata", `{"usage":{"inputTokens":1,"outputTokens":2}}`), "no frame at all"...)
	got := readPieces(vector{format: ai.Bedrock, content: "application/vnd.amazon.eventstream"}, "", body)
	if want := (outcome{Usage: ai.Usage{Input: 1, Output: 2}, State: ai.FinalUsage}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestResult_Settle(t *testing.T) {
	u := ai.Usage{Input: 10, Cached: 5, Output: 1, Reasoning: 20}
	for _, tt := range []struct {
		name   string
		result ai.Result
		want   ai.Usage
	}{
		{"no usage", ai.Result{}, ai.Usage{Input: 100, Output: 50}},
		{"partial", ai.Result{Usage: u, State: ai.PartialUsage}, ai.Usage{Input: 10, Cached: 5, Output: 30, Reasoning: 20}},
		{"final", ai.Result{Usage: u, State: ai.FinalUsage}, u},
	} {
		if got := tt.result.Settle(100, 50); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestReader_Headers reads frames with headers of other types, or longer than the reader keeps.
func TestReader_Headers(t *testing.T) {
	payload := `{"usage":{"inputTokens":1,"outputTokens":2}}`
	want := outcome{Usage: ai.Usage{Input: 1, Output: 2}, State: ai.FinalUsage}
	for _, headers := range [][]string{
		{}, {"x", strings.Repeat("x", 5000)}, {":message-type", "event", ":event-type", "metadata"},
	} {
		v := vector{format: ai.Bedrock, content: "application/vnd.amazon.eventstream"}
		body := frameOf(payload, headers...)
		if got := readPieces(v, "", bytes.Split(body, nil)...); got != want {
			t.Errorf("%.30v: got %+v, want %+v", headers, got, want)
		}
	}
}

// TestReader_WhiteSpace reads a body whose first piece has no content.
func TestReader_WhiteSpace(t *testing.T) {
	v := vector{format: ai.OpenAIChat}
	if got := readPieces(v, "", []byte(" \r\n"), nil, []byte(`{"usage":{"prompt_tokens":1}}`)); got.Input != 1 {
		t.Errorf("got %+v", got)
	}
}
