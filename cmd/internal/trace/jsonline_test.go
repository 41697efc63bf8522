// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/trace"
)

// next reads a trace of one line.
func next(line string, format trace.Format) (*trace.Request, error) {
	return trace.NewReader(strings.NewReader(line), format).Next()
}

func TestReader_JSONLines(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		want map[string]string
		cost bucket.Tokens
	}{
		"all fields": {
			`{"at":12.5,"method":"GET","path":"/","host":"h","ip":"192.0.2.1","headers":{"X-Api-Key":"k1"},"query":{"q":"1"},"jwt":{"plan":"pro"},"cost":2.5}`,
			map[string]string{"method": "GET", "path": "/", "host": "h", "header:host": "h", "ip:address": "192.0.2.1",
				"header:x-api-key": "k1", "query:q": "1", "jwt:plan": "pro"},
			2500,
		},
		"nothing but at": {`{"at":12.5}`, nil, 0},
		"empty fields":   {`{"at":12.5,"method":"","path":"","host":"","ip":"","headers":{},"query":{},"jwt":{},"cost":null}`, nil, 0},
		"null fields":    {`{"at":12.5,"method":null,"path":null,"host":null,"ip":null,"headers":null,"query":null,"jwt":null,"cost":null}`, nil, 0},
		"empty values are there": {
			`{"at":12.5,"headers":{"x-api-key":""},"query":{"q":""},"jwt":{"plan":""}}`,
			map[string]string{"header:x-api-key": "", "query:q": "", "jwt:plan": ""}, 0,
		},
		"white space": {" {\t\"at\" : 12.5 ,\r \"path\":\"/x\" , \"jwt\" : { } } \r", map[string]string{"path": "/x"}, 0},
		"escapes":     {`{"at":12.5,"path":"\/\u00e9\ud83d\ude00\"\\\n"}`, map[string]string{"path": "/é😀\"/\n"}, 0},
		"a path with its query": {
			`{"at":12.5,"path":"/a/..//x?q=a%20b&r=2","query":{"r":"3"}}`,
			map[string]string{"path": "/x", "query:q": "a b", "query:r": "3"}, 0,
		},
		"a path as it was sent": {
			`{"at":12.5,"path":"/v1//%63hat%3Fx;y?q=1"}`, map[string]string{"path": "/v1/chat?x", "query:q": "1"}, 0,
		},
		"host and port": {
			`{"at":12.5,"host":"API.Example.com.:8080"}`, map[string]string{"host": "api.example.com", "header:host": "API.Example.com.:8080"}, 0,
		},
		"cookies":        {`{"at":12.5,"headers":{"Cookie":"a=b; session=\"s1\"; session=s2"}}`, map[string]string{"cookie:session": "s1"}, 0},
		"first of equal": {`{"at":12.5,"headers":{"X-Api-Key":"1","x-api-key":"2"}}`, map[string]string{"header:x-api-key": "1"}, 0},
		"claims of any kind": {
			`{"at":12.5,"jwt":{"aud":["a",{"b":null}],"n":null,"o":{},"e":[],"plan":12.50}}`, map[string]string{"jwt:plan": "12.50"}, 0,
		},
		"a language model": {
			`{"at":12.5,"ai":{"model":"gpt-4o","prompt_tokens":812,"max_tokens":"400","fingerprint":null},"usage":{"input":1}}`,
			map[string]string{"ai:model": "gpt-4o", "ai:prompt_tokens": "812", "ai:max_tokens": "400"}, 0,
		},
		"a claim that is true": {`{"at":12.5,"jwt":{"plan":true}}`, map[string]string{"jwt:plan": "true"}, 0},
		"a claim that is null": {`{"at":12.5,"jwt":{"plan":null}}`, nil, 0},
	} {
		req, err := next(tt.line, trace.FormatAuto)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := attributes(t, req); !maps.Equal(got, tt.want) || req.At != 12_500_000 || req.Cost != tt.cost {
			t.Errorf("%s:\n got %q at %d cost %v\nwant %q at 12500000 cost %v", name, got, req.At, req.Cost, tt.want, tt.cost)
		}
	}
}

func TestReader_JSONTimesAreExact(t *testing.T) {
	for at, want := range map[string]bucket.Instant{
		"0": 0, "-0.0": -1, "0.1": 100_000, "0.000001": 1, "0.0000019": 1, "0.00000099": 0, "1e-6": 1, "1E-7": 0, "1e3": 1e9,
		"12.345678e1": 123_456_780, "0.0000123e+5": 1_230_000, "1795262400.123456": 1_795_262_400_123_456, "1795262400.1234567": 1_795_262_400_123_456,
		"9007199254.740991": 1<<53 - 1, "9007199254.740992": -1, "1e10": -1, "1e999999": -1, "1e99999999999999999999": -1, "0e999999": 0, "1e-999999": 0,
		"-1": -1, "-1e-9": -1, "01": -1, "1.": -1, ".5": -1, "+1": -1, "1e": -1, "NaN": -1, `"1"`: -1, "null": -1, "true": -1, "[1]": -1, "0x1": -1, "": -1,
	} {
		req, err := next(`{"at":`+at+`}`, trace.FormatJSONL)
		if want == -1 {
			if err == nil {
				t.Errorf("at %s: got %d, want an error", at, req.At)
			}
			continue
		}
		if err != nil || req.At != want {
			t.Errorf("at %s: got %v, error %v, want %d", at, req, err, want)
		}
	}
}

func TestReader_JSONMistakes(t *testing.T) {
	for line, want := range map[string]string{
		`{"path":"/"}`:                        `missing field "at"`,
		`{}`:                                  `missing field "at"`,
		`{"at":1,"pth":"/"}`:                  `unknown field "pth"`,
		`{"at":1,"At":1}`:                     `unknown field "At"`,
		`{"at":1,"at":1}`:                     `duplicate field "at"`,
		`{"at":1,"path":1}`:                   `"path": column 16: found "1}", want a string`,
		`{"at":1,"headers":[]}`:               `want an object`,
		`{"at":1,"headers":{"a":["b"]}}`:      `want a string`,
		`{"at":1,"headers":{"a":null}}`:       `want a string`,
		`{"at":1,"ip":"nowhere"}`:             `"nowhere" is not an IP address`,
		`{"at":1,"cost":0}`:                   `must be above 0`,
		`{"at":1,"duration":-1}`:              `is negative`,
		`{"at":1,"duration":"1"}`:             `want a number`,
		`{"at":1,"duration":604800.1}`:        `a request lasts at most 168h0m0s`,
		`{"at":1,"cost":-1}`:                  `"-1"`,
		`{"at":1,"ai":{"tokens":1}}`:          `unknown attribute "tokens"`,
		`{"at":1,"usage":{"total":1}}`:        `unknown class "total"`,
		`{"at":1,"usage":{"input":-1}}`:       `"input": -1 is not a number of tokens`,
		`{"at":1,"usage":{"output":1.5}}`:     `"output": 1.5 is not a number of tokens`,
		`{"at":1,"usage":{"output":1e9}}`:     `"output": 1e9 is not a number of tokens`,
		`{"at":1,"usage":{"output":"1"}}`:     `want a number`,
		`{"at":1,"cost":0.0001}`:              `finer than a thousandth`,
		`{"at":1,"cost":1e99}`:                `"cost"`,
		`{"at":1,"cost":"1"}`:                 `want a number`,
		`{"at":1} {"at":2}`:                   `want the end of the line`,
		`{"at":1`:                             `unexpected end of the line, want a comma or }`,
		`{"at":1,}`:                           `want a string`,
		`{"at" 1}`:                            `want a colon`,
		`{"at":1,"path":"/`:                   `unexpected end of the line`,
		`{"at":1,"path":"/\`:                  `unexpected end of the line`,
		`{"at":1,"path":"\x"}`:                `invalid escape`,
		"{\"at\":1,\"path\":\"\x01\"}":        `printable`,
		"{\"at\":1,\"path\":\"\xff\"}":        `not UTF-8`,
		`{"at":1,"jwt":{"a":[1,]}}`:           `invalid character`,
		`{"at":1,"jwt":{"a":tru}}`:            `want a number`,
		`{"at":1,"jwt":{"a":nulls}}`:          `a comma or }`,
		`[{"at":1}]`:                          `not an access log line`,
		`{"at":1,"jwt":{"a":` + deep + `}}`:   `max depth`,
		`{"at":1,"path":"` + long + `"}`:      `longer than`,
		`{"at":1,"p` + long[:1000] + `":"1"}`: `unknown field`,
	} {
		r := trace.NewReader(strings.NewReader(line+"\n"+`{"at":2}`), trace.FormatAuto)
		_, err := r.Next()
		var bad *trace.LineError
		if !errors.As(err, &bad) || bad.Line != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got error %v, want a LineError of line 1 with %q", line, err, want)
		}
		if req, err := r.Next(); err != nil || req.At != 2_000_000 {
			t.Errorf("%.60s: the line after it: got %v, error %v", line, req, err)
		}
	}
}

var (
	deep = strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	long = strings.Repeat("x", 3*trace.MaxLineBytes)
)

func TestReader_EmptyAndBroken(t *testing.T) {
	for _, text := range []string{"", "\n", " \r\n\n", "\ufeff"} {
		if _, err := next(text, trace.FormatAuto); !errors.Is(err, io.EOF) {
			t.Errorf("%q: got error %v, want io.EOF", text, err)
		}
	}
	if req, err := next("\ufeff{\"at\":1}", trace.FormatAuto); err != nil || req.At != 1_000_000 {
		t.Errorf("byte order mark: got %v, error %v", req, err)
	}
	broken := errors.New("disk on fire")
	r := trace.NewReader(io.MultiReader(strings.NewReader("{\"at\":1}\n{\"at\":2"), failing{broken}), trace.FormatAuto)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	var bad *trace.LineError
	if _, err := r.Next(); !errors.Is(err, broken) || errors.As(err, &bad) {
		t.Errorf("broken reader: got error %v, want %v, and no LineError", err, broken)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestParseFormat(t *testing.T) {
	for _, f := range []trace.Format{trace.FormatAuto, trace.FormatCombined, trace.FormatJSONL} {
		if got, err := trace.ParseFormat(f.String()); err != nil || got != f {
			t.Errorf("ParseFormat(%q): got %v, error %v", f.String(), got, err)
		}
	}
	for _, s := range []string{"", "JSON", "json"} {
		if got, err := trace.ParseFormat(s); err == nil {
			t.Errorf("ParseFormat(%q): got %v, want an error", s, got)
		}
	}
}

// FuzzJSONLine holds our reading of a line against encoding/json's.
func FuzzJSONLine(f *testing.F) {
	f.Add(`{"at":12.5,"method":"GET","path":"/","host":"h","ip":"::1","headers":{"a":"b"},"query":{"q":"1"},"jwt":{"plan":"pro"},"cost":2.5}`)
	f.Add(`{"at":1,"duration":0.5,"status":200,"bytes":1,"response_headers":{"a":"b"},"ai":{"model":"m","prompt_tokens":5},"usage":{"input":5,"output":2}}`)
	f.Add(`{"at":1e-3,"path":"\u00e9\"\\","jwt":{"plan":[1,{"x":null}],"n":true},"cost":null}`)
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsRune(line, '\n') || !utf8.ValidString(line) || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "\ufeff") {
			return
		}
		req, err := next(line, trace.FormatJSONL)
		var want struct {
			At                     json.Number
			Method, Path, Host, IP *string
			Headers, Query         map[string]string
			JWT, AI                map[string]any
			Cost, Duration         *json.Number
			Status, Bytes          *json.Number
			Answers                map[string]string `json:"response_headers"`
			Usage                  map[string]json.Number
		}
		dec := json.NewDecoder(bytes.NewReader([]byte(line)))
		dec.UseNumber()
		dec.DisallowUnknownFields()
		theirs := dec.Decode(&want)
		if _, more := dec.Token(); theirs == nil && !errors.Is(more, io.EOF) {
			theirs = errors.New("more than one value")
		}
		if err != nil {
			return // ours is stricter: names have one spelling and come once, addresses are addresses
		}
		if theirs != nil {
			t.Fatalf("%q: got %+v, encoding/json says %v", line, req, theirs)
		}
		seconds, ok := new(big.Rat).SetString(want.At.String())
		if !ok {
			t.Fatalf("%q: at %q", line, want.At)
		}
		micros := seconds.Mul(seconds, big.NewRat(1_000_000, 1))
		if floor := new(big.Int).Quo(micros.Num(), micros.Denom()); floor.Int64() != int64(req.At) {
			t.Errorf("%q: got at %d, want %d", line, req.At, floor)
		}
		has := attributes(t, req)
		if want.Method != nil && has["method"] != *want.Method {
			t.Errorf("%q: got method %q, want %q", line, has["method"], *want.Method)
		}
		if plan, isText := want.JWT["plan"].(string); isText && strings.Count(line, "plan") == 1 && has["jwt:plan"] != plan {
			t.Errorf("%q: got jwt:plan %q, want %q", line, has["jwt:plan"], plan)
		}
	})
}
