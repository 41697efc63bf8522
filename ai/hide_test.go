// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/ai"
)

const (
	askedStream = `data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":null,"obfuscation":"x"}` + "\n\n" +
		": comment\n\n" +
		`data: {"usage":null,"choices":[{"index":0,"delta":{"content":"\"usage\":null"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}], "usage": null}` + "\n\n" +
		`data: {"choices":[ ],"prompt_filter_results":[]}` + "\n\n" +
		`data: {"choices":[{"index":0}],"usage":{"prompt_tokens":1}}` + "\n\n" +
		`id: 5` + "\n" + `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\n" +
		"data: [DONE]\n\n"
	plainStream = `data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Hi"}}],"obfuscation":"x"}` + "\n\n" +
		": comment\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"\"usage\":null"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"choices":[ ],"prompt_filter_results":[]}` + "\n\n" +
		`data: {"choices":[{"index":0}],"usage":{"prompt_tokens":1}}` + "\n\n" +
		"data: [DONE]\n\n"
)

func TestUsageFilter(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		body, want := strings.ReplaceAll(askedStream, "\n", end), strings.ReplaceAll(plainStream, "\n", end)
		for i := range len(body) {
			var f ai.UsageFilter
			got := f.Append(nil, []byte(body[:i]))
			got = f.Flush(f.Append(got, []byte(body[i:])))
			// Between \r and \n of a removed event, an empty line remains.
			if string(got) != want && strings.ReplaceAll(string(got), end+"\n"+"data", end+"data") != want {
				t.Fatalf("line end %q, cut at %d: got %q, want %q", end, i, got, want)
			}
		}
	}
}

// TestUsageFilter_AtOnce checks that a complete event does not wait for the next one.
func TestUsageFilter_AtOnce(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		var f ai.UsageFilter
		for range 3 {
			event := `data: {"choices":[{"index":0}]}` + end
			f.Append(nil, []byte(event[:5]))
			if got := f.Append(nil, []byte(event[5:])); string(got) != event {
				t.Errorf("line end %q: got %q", end, got)
			}
		}
	}
}

// TestUsageFilter_Long passes an event above the bound on as it is, and filters the next one.
func TestUsageFilter_Long(t *testing.T) {
	var f ai.UsageFilter
	long := `data: {"choices":[],"usage":{},"x":"` + strings.Repeat("x", 3<<20) + `"}` + "\n\n"
	var got []byte
	for piece := range piecesOf([]byte(long+askedStream), 4096) {
		got = f.Append(got, piece)
	}
	if string(got) != long+plainStream {
		t.Errorf("got %d bytes, want %d", len(got), len(long+plainStream))
	}
}
