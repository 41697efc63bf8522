// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/metehq/mete/ai"
)

// FuzzReader compares a body that is read whole with the same body in pieces.
func FuzzReader(f *testing.F) {
	for _, v := range readVectors(f) {
		f.Add(uint8(v.format), v.content, v.body, uint8(7))
	}
	f.Fuzz(func(t *testing.T, format uint8, content string, body []byte, size uint8) {
		v := vector{format: ai.Format(format), content: content}
		pieces := [][]byte{}
		for piece := range piecesOf(body, int(size)+1) {
			pieces = append(pieces, piece)
		}
		whole, cut := readPieces(v, "", body), readPieces(v, "", pieces...)
		if whole != cut {
			t.Errorf("got %+v whole and %+v in pieces", whole, cut)
		}
		if whole.Total() < 0 || whole.Total() > ai.MaxUsage || whole.Text < 0 || whole.Bytes > 4*int64(len(body)) {
			t.Errorf("got %+v", whole)
		}
	})
}

// FuzzReader_Frames puts payloads into frames, so that the checksums are correct.
func FuzzReader_Frames(f *testing.F) {
	f.Add("metadata", `{"usage":{"inputTokens":22,"outputTokens":55,"totalTokens":77}}`, "x")
	f.Add("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello"}}`, "")
	f.Fuzz(func(t *testing.T, event, payload, rest string) {
		if len(event) > 200 {
			return
		}
		body := append(frame(event, payload), rest...)
		v := vector{format: ai.Bedrock, content: "application/vnd.amazon.eventstream"}
		if whole, cut := readPieces(v, "", body), readPieces(v, "", bytes.Split(body, nil)...); whole != cut {
			t.Errorf("got %+v whole and %+v byte by byte", whole, cut)
		}
	})
}

// FuzzReadRequest compares the validity and the text with encoding/json.
func FuzzReadRequest(f *testing.F) {
	for _, body := range []string{`{"model":"m","messages":[{"content":"\ud83d\ude00"}],"max_tokens":-1.5e3}`, `{"a":[true,false,null,{}],"b":"\u00"}`, "{\"a\":\"\x01\"}", `[0.1E-7]`, `{"a":01}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) < 1000 && (ai.FindError(body) < 0) != json.Valid(body) {
			t.Errorf("%q: error at %d, but valid is %v", body, ai.FindError(body), json.Valid(body))
		}
		for _, format := range formats {
			r, err := ai.ReadRequest(format, "", body, int64(len(body)))
			if err != nil {
				continue
			}
			if text := r.AppendText(nil); int64(len(text)) > r.Text.Bytes {
				t.Errorf("%s: a text of %d bytes counts %d", format, len(text), r.Text.Bytes)
			}
			if asked, differs := ai.AskForUsage(body); differs && !json.Valid(asked) {
				t.Errorf("asked: %q", asked)
			}
		}
	})
}

// FuzzUsageFilter compares a stream that is filtered whole with the same stream in pieces.
func FuzzUsageFilter(f *testing.F) {
	f.Add(strings.Repeat(`data: {"choices":[],"usage":null}`+"\r\n\r\n", 3), uint8(1))
	f.Add(`data: {"choices":[],"usage":{}}`+"\r\rdata: [DONE]\n\n", uint8(5))
	f.Fuzz(func(t *testing.T, body string, size uint8) {
		var whole, cut ai.UsageFilter
		want := whole.Flush(whole.Append(nil, []byte(body)))
		var got []byte
		for piece := range piecesOf([]byte(body), int(size)+1) {
			got = cut.Append(got, piece)
		}
		// A \n behind the \r of a removed event remains if it comes in another piece.
		if got = cut.Flush(got); strings.ReplaceAll(string(got), "\n", "") != strings.ReplaceAll(string(want), "\n", "") {
			t.Errorf("got %q in pieces and %q whole", got, want)
		}
	})
}
