// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestCanonicalJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                          `{}`,
		` {}`:                         ``,
		`{"b":1,"a":[ ]}`:             `{"a":[],"b":1,}`,
		"{ \"a\" : 1.0 ,\n\"b\":\t2}": `{"a":1.0,"b":2,}`,
		`{"b": {"y": [1, {"d": "}", "c": "\"]"}], "x": null}, "a": true}`: `{"a":true,"b":{"x":null,"y":[1,{"c":"\"]","d":"}",}],},}`,
		`{"a":1,"a":2}`: `{"a":1,"a":2,}`,
		`{"a":1`:        ``,
		`{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}`: `{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `,}`,
		`{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`: ``,
		`[1]`: ``,
		``:    ``,
	} {
		if got, ok := canonicalJSON([]byte(text)); string(got) != want || ok != (want != "") {
			t.Errorf("%s: %s, %v, want %s", text, got, ok, want)
		}
	}
}

// FuzzCanonicalJSON compares equal values in different spellings of white space and order.
func FuzzCanonicalJSON(f *testing.F) {
	f.Add([]byte(`{"b":{"y":[1,{"d":"}"}],"x":null},"a":[true,"\\",-1e5]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := canonicalJSON(text)
		var value map[string]any
		if err := json.Unmarshal(text, &value); (err == nil && text[0] == '{') != ok || !ok {
			if ok && err != nil {
				t.Fatalf("%q is no object, and became %q", text, got)
			}
			return
		}
		again, err := json.MarshalIndent(json.RawMessage(text), "\n ", "\t")
		if err != nil {
			return
		}
		if spaced, ok := canonicalJSON(again[bytes.IndexByte(again, '{'):]); !ok || string(spaced) != string(got) {
			t.Errorf("%q became %q, and with white space %q", text, got, spaced)
		}
	})
}
