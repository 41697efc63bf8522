// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

func TestBadRequests(t *testing.T) {
	h, _ := newAPI(t, perKey, httpapi.Config{})
	cost := func(text string) string { return `{"attributes":{"header:x-api-key":"k1"},"cost":` + text + `}` }
	for _, tt := range []struct{ name, body, pointer, detail string }{
		{"empty", ``, "", "the body is empty"},
		{"not JSON", `hello`, "", "this is not JSON"},
		{"cut", `{"attributes":{"path":"/"`, "/attributes/path", "ends early"},
		{"cut in a string", `{"attributes":{"path":"/`, "/attributes/path", "expected a string"},
		{"cut in an escape", `{"attributes":{"path":"\`, "/attributes/path", "expected a string"},
		{"bad escape", `{"attributes":{"path":"\x"}}`, "/attributes/path", "expected a string"},
		{"line break in a string", "{\"attributes\":{\"path\":\"\n\"}}", "/attributes/path", "expected a string"},
		{"trailing comma", `{"attributes":{},}`, "/attributes", "expected a quoted member name"},
		{"no comma", `{"attributes":{} "cost":1}`, "/attributes", "expected a comma"},
		{"no colon", `{"attributes" {}}`, "/attributes", "expected a colon"},
		{"NUL at the end", "{\"attributes\":{}}\x00", "", "unexpected text after"},
		{"array", `[]`, "", "expected an object"},
		{"null", `null`, "", "expected an object"},
		{"unexpected text after", `{"attributes":{}} {}`, "", "unexpected text after"},
		{"not UTF-8", "{\"attributes\":{\"path\":\"\xff\"}}", "", "not UTF-8"},
		{"no attributes", `{}`, "", `"attributes" is missing`},
		{"null attributes", `{"attributes":null}`, "", `"attributes" is missing`},
		{"null batch", `{"requests":null}`, "", `"attributes" is missing`},
		{"attribute twice, once null", `{"attributes":{"header:x":null,"header:x":"1"}}`, "/attributes/header:x", "duplicate"},
		{"attribute null twice", `{"attributes":{"header:x":"1","header:X":null}}`, "/attributes/header:X", "duplicate"},
		{"cost twice, once null", `{"attributes":{},"cost":null,"cost":2}`, "/cost", "duplicate"},
		{"half a character", `{"attributes":{"header:x-api-key":"\ud800"}}`, "/attributes/header:x-api-key", "unpaired surrogate"},
		{"the other half", `{"attributes":{"header:x-api-key":"a\udfffb"}}`, "/attributes/header:x-api-key", "unpaired surrogate"},
		{"two first halves", `{"attributes":{"header:x-api-key":"\ud83d\ud83d\ude00"}}`, "/attributes/header:x-api-key", "unpaired surrogate"},
		{"halves apart", `{"attributes":{"header:x-api-key":"\ud83d-\ude00"}}`, "/attributes/header:x-api-key", "unpaired surrogate"},
		{"half a character in a name", `{"attributes":{"x\udc00":"1"}}`, "/attributes", "unpaired surrogate"},
		{"unknown member", `{"attributes":{},"hits":3}`, "/hits", "unknown member"},
		{"member in capitals", `{"Attributes":{}}`, "/Attributes", "unknown member"},
		{"member twice", `{"attributes":{},"cost":1,"cost":2}`, "/cost", "duplicate"},
		{"id is a number", `{"attributes":{},"id":7}`, "/id", "not a string"},
		{"id is empty", `{"attributes":{},"id":""}`, "/id", "is empty"},
		{"id too long", `{"attributes":{},"id":"` + strings.Repeat("x", 129) + `"}`, "/id", "too long"},
		{"id with a tab", `{"attributes":{},"id":"a\tb"}`, "/id", "invalid characters"},
		{"id not ASCII", `{"attributes":{},"id":"é"}`, "/id", "invalid characters"},
		{"unknown attribute", `{"attributes":{"headr:x":"k1"}}`, "/attributes/headr:x", "did you mean"},
		{"escaped place", `{"attributes":{"a/b~c d":"k1"}}`, "/attributes/a~1b~0c d", "write header:NAME"},
		{"attribute twice", `{"attributes":{"header:X":"1","header:x":"2"}}`, "/attributes/header:x", "duplicate"},
		{"attribute is a number", `{"attributes":{"jwt:level":3}}`, "/attributes/jwt:level", "must be strings"},
		{"address is a name", `{"attributes":{"ip:address":"localhost"}}`, "/attributes/ip:address", `"localhost" is not an address`},
		{"address is empty", `{"attributes":{"ip:address":""}}`, "/attributes/ip:address", "not an address"},
		{"address with a port", `{"attributes":{"ip:address/56":"192.0.2.1:80"}}`, "/attributes/ip:address~156", "without a port"},
		{"address too long", `{"attributes":{"ip:address":"` + strings.Repeat("1", 9000) + `"}}`, "/attributes/ip:address", "not an address"},
		{"host is empty", `{"attributes":{"host":""}}`, "/attributes/host", "invalid host"},
		{"host is a port", `{"attributes":{"host":":80"}}`, "/attributes/host", "invalid host"},
		{"method is empty", `{"attributes":{"method":""}}`, "/attributes/method", "the method is empty"},
		{"bad address in a batch", `{"requests":[{"attributes":{}},{"attributes":{"ip:address":"x"}}]}`, "/requests/1/attributes/ip:address", "not an address"},
		{"cost NaN", cost(`NaN`), "/cost", "this is not JSON"},
		{"cost NaN in quotes", cost(`"NaN"`), "/cost", "not a number"},
		{"cost infinite", cost(`Infinity`), "/cost", "this is not JSON"},
		{"cost negative", cost(`-1`), "/cost", "negative"},
		{"cost zero", cost(`0`), "/cost", "use peek"},
		{"cost zero in full", cost(`0.000e9`), "/cost", "use peek"},
		{"cost hexadecimal", cost(`1x10`), "/cost", "this is not JSON"},
		{"cost hexadecimal from 0", cost(`0x10`), "/cost", `this is not JSON: "0x10"`},
		{"cost of a minus", cost(`-`), "/cost", "this is not JSON"},
		{"cost with a zero before it", cost(`01`), "/cost", "this is not JSON"},
		{"cost with a plus", cost(`+1`), "/cost", "this is not JSON"},
		{"cost too fine", cost(`0.0001`), "/cost", "finer than a thousandth"},
		{"cost above all", cost(`9007199254740.992`), "/cost", "too many digits"},
		{"cost overflows", cost(`1e999`), "/cost", "write a number above 0"},
		{"cost overflows an exponent", cost(`1e99999999999999999999`), "/cost", "write a number above 0"},
		{"cost of 400 digits", cost(strings.Repeat("9", 400)), "/cost", "too many digits"},
		{"wait without a unit", `{"attributes":{},"max_wait":"2"}`, "/max_wait", "write a number and a unit"},
		{"wait as a number", `{"attributes":{},"max_wait":2}`, "/max_wait", "is not a string"},
		{"wait of years", `{"attributes":{},"max_wait":"87600h"}`, "/max_wait", "more than 1h"},
		{"wait above the bound", `{"attributes":{},"max_wait":"1h1us"}`, "/max_wait", "more than 1h"},
		{"wait of years in a batch", `{"requests":[{"attributes":{}},{"attributes":{},"max_wait":"1d"}]}`, "/requests/1/max_wait", "more than 1h"},
		{"wait negative", `{"attributes":{},"max_wait":"-2s"}`, "/max_wait", "write a number and a unit"},
		{"empty batch", `{"requests":[]}`, "", "the batch is empty"},
		{"batch is an object", `{"requests":{}}`, "/requests", "expected an array"},
		{"batch and a request", `{"requests":[{"attributes":{}}],"cost":1}`, "", "combined with other members"},
		{"batch in a batch", `{"requests":[{"requests":[]}]}`, "/requests/0/requests", "unknown member"},
		{"cost in a batch", `{"requests":[{"attributes":{}},{"attributes":{},"cost":-1}]}`, "/requests/1/cost", "negative"},
		{"no attributes in a batch", `{"requests":[{"attributes":{}},{}]}`, "/requests/1", "is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := post(h, "/v1/take", tt.body)
			var p api.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatalf("%.200q: got %q: %v", tt.body, w.Body, err)
			}
			if w.Code != 400 || p.Status != 400 || p.Title != "Bad Request" || w.Header().Get("Content-Type") != "application/problem+json" ||
				p.Pointer != tt.pointer || !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("%.200q:\n got %d %s\nwant 400 with pointer %q and detail …%s…", tt.body, w.Code, w.Body, tt.pointer, tt.detail)
			}
			if len(p.Detail) > 500 {
				t.Errorf("%.200q: detail has %d bytes", tt.body, len(p.Detail))
			}
		})
	}
	if w := post(h, "/v1/take", cost("2")); w.Code != 200 {
		t.Errorf("after all these: got %d %s, want all tokens there", w.Code, w.Body)
	}
}

func TestCostsAreExact(t *testing.T) {
	for text, left := range map[string]bucket.Tokens{
		"1": 1000, "1.5": 500, "0.001": 1999, "2.000": 0, " 1 ": 1000, "1e0": 1000, "20e-1": 0, "1E-3": 1999, "null": 1000,
	} {
		h, _ := newAPI(t, perKey, httpapi.Config{})
		ask := func(path, cost string) int {
			return verdict(post(h, path, `{"attributes":{"header:x-api-key":"k1"},"cost":`+cost+`}`))
		}
		if got := ask("/v1/take", text); got != 200 {
			t.Errorf("cost %s: got %d, want 200", text, got)
		}
		if got := ask("/v1/peek", (left + 1).String()); got != denial {
			t.Errorf("peek %v after a cost of %s of 2: got %d, want a denial", left+1, text, got)
		}
		if left > 0 && ask("/v1/peek", left.String()) != 200 {
			t.Errorf("peek %v after a cost of %s of 2: want 200", left, text)
		}
	}
}

// A member or an attribute that is null is as one that is left out.
func TestNullIsLeftOut(t *testing.T) {
	for _, body := range []string{
		`{"attributes":{"header:x-api-key":"k1","path":null,"jwt:sub":null},"cost":null,"max_wait":null,"id":null}`,
		`{"requests":null,"attributes":{"header:x-api-key":"k1"}}`,
		k1,
	} {
		h, _ := newAPI(t, perKey, httpapi.Config{})
		wantAnswer(t, h, "/v1/take", body, 200,
			`{"allowed":true,"rule":"free","reason":"","retry_after":0,"degraded":false,"limits":[{"rule":"free","limit":"free","remaining":1,"retry_after":0,"full_after":0.1},{"rule":"all","limit":"all","remaining":999,"retry_after":0,"full_after":0.001}]}`)
	}
	h, _ := newAPI(t, perKey, httpapi.Config{})
	wantAnswer(t, h, "/v1/take", `{"attributes":{"header:x-api-key":null}}`, 200,
		`{"allowed":true,"rule":"all","reason":"","retry_after":0,"degraded":false,"limits":[{"rule":"all","limit":"all","remaining":999,"retry_after":0,"full_after":0.001}]}`)
}

// Pairs of surrogates are characters, and a backslash before a u need not be an escape.
func TestSurrogatePairs(t *testing.T) {
	h, _ := newAPI(t, perKey, httpapi.Config{})
	for i, value := range []string{`\ud83d\ude00`, "\U0001F600", `\uD83D\uDE00`} {
		if w, want := post(h, "/v1/take", `{"attributes":{"header:x-api-key":"`+value+`"}}`), []int{200, 200, denial}[i]; verdict(w) != want {
			t.Errorf("take %d of 2 as %s: got %d %s, want %d", i+1, value, w.Code, w.Body, want)
		}
	}
	if w := post(h, "/v1/take", `{"attributes":{"header:x-api-key":"\\ud800"}}`); w.Code != 200 {
		t.Errorf("a backslash and a word: got %d %s, want 200", w.Code, w.Body)
	}
}

// One call cannot lock a key out for longer than the bound, whatever it costs.
func TestMaxWait_IsBounded(t *testing.T) {
	for _, tt := range []struct {
		config  httpapi.Config
		longest string
	}{
		{httpapi.Config{}, "1h"},
		{httpapi.Config{MaxWait: 90 * time.Second}, "1m30s"},
	} {
		h, clock := newAPI(t, perKey, tt.config)
		ask := func(path, wait, cost string) *httptest.ResponseRecorder {
			return post(h, path, `{"attributes":{"header:x-api-key":"k1"},"cost":`+cost+`,"max_wait":"`+wait+`"}`)
		}
		for _, path := range []string{"/v1/take", "/v1/peek"} {
			if w := ask(path, "87600h", "100000000"); w.Code != 400 || !strings.Contains(w.Body.String(), "more than "+tt.longest) {
				t.Errorf("%s with a wait of ten years: got %d %s, want 400 that names %s", path, w.Code, w.Body, tt.longest)
			}
		}
		if w := ask("/v1/take", tt.longest, "100000000"); verdict(w) != denial {
			t.Errorf("a cost of 115 days within %s: got %d %s, want a denial", tt.longest, w.Code, w.Body)
		}
		if w := ask("/v1/take", tt.longest, "2"); w.Code != 200 {
			t.Errorf("after these: got %d %s, want all tokens there", w.Code, w.Body)
		}
		bound, err := time.ParseDuration(tt.longest)
		if err != nil {
			t.Fatal(err)
		}
		all := strconv.Itoa(int(bound/time.Second) * 10) // at 10 per second
		if w := ask("/v1/take", tt.longest, all); w.Code != 200 {
			t.Errorf("a cost of all that refills in %s: got %d %s, want 200", tt.longest, w.Code, w.Body)
		}
		clock.advance(bound + 200*time.Millisecond)
		if w := post(h, "/v1/take", k1); w.Code != 200 {
			t.Errorf("once that is over: got %d %s, want 200", w.Code, w.Body)
		}
	}
	if _, err := httpapi.New(limiter(t, storetest.NewModel(newClock().read), perKey), httpapi.Config{MaxWait: -1}); err == nil {
		t.Error("a bound below 0: want an error")
	}
}

// A flood is an endless body that counts the bytes read.
type flood struct{ read int }

func (f *flood) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	f.read += len(p)
	return len(p), nil
}

func TestHugeBodyIsNotRead(t *testing.T) {
	h, _ := newAPI(t, perKey, httpapi.Config{})
	for _, declared := range []int64{100 << 20, -1} {
		body := new(flood)
		r := httptest.NewRequest(http.MethodPost, "/v1/take", io.LimitReader(body, 100<<20))
		r.ContentLength = declared
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge || body.read > 2*httpapi.MaxBodyBytes {
			t.Errorf("100 MiB, declared as %d: got %d with %d bytes read, want 413 and hardly more than %d", declared, w.Code, body.read, httpapi.MaxBodyBytes)
		}
	}
	longest := k1 + strings.Repeat(" ", httpapi.MaxBodyBytes-len(k1))
	if w := post(h, "/v1/take", longest); w.Code != 200 {
		t.Errorf("body of exactly %d bytes: got %d %s, want 200", len(longest), w.Code, w.Body)
	}
	if w := post(h, "/v1/take", longest+" "); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("one byte more: got %d %s, want 413", w.Code, w.Body)
	}
}

func FuzzTake(f *testing.F) {
	for _, seed := range []string{k1, `{"requests":[` + k1 + `]}`, `{"attributes":{},"cost":1.5,"max_wait":"2s"}`, `{"attributes":{"a":1}}`, `{"cost":1e9}`, `[`, `{"attributes":{"ip:address/56":"::1"}}x`} {
		f.Add([]byte(seed))
	}
	store, err := memstore.New(memstore.Config{MaxKeys: 1 << 10})
	if err != nil {
		f.Fatal(err)
	}
	h := apiOver(f, store, perKey, httpapi.Config{})
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(h, "/v1/take", string(body))
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%q: answer %q is not JSON", body, w.Body)
		}
		switch w.Code {
		case 200:
			var any map[string]any // whatever we understand, encoding/json does, too
			if err := json.Unmarshal(body, &any); err != nil {
				t.Fatalf("%q: got %d, but it is not JSON: %v", body, w.Code, err)
			}
		case 400, 413:
			var p api.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Detail == "" {
				t.Fatalf("%q: problem %s has no detail (%v)", body, w.Body, err)
			}
		default:
			t.Fatalf("%q: got %d %s", body, w.Code, w.Body)
		}
	})
}
