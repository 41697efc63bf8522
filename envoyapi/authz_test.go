// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/envoyapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A keyStore records the key of the last charge.
type keyStore struct {
	*storetest.Model
	key string
}

func (s *keyStore) Take(ctx context.Context, snaps []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	s.key = charges[0].Key
	return s.Model.Take(ctx, snaps, charges, mode)
}

const unset = "<missing>"

// readAttribute returns the value of an attribute in a check, and the status of the answer.
func readAttribute(t testing.TB, c envoyapi.AuthorizationConfig, attribute string, req *authv3.CheckRequest) (value string, code int) {
	t.Helper()
	keys := &keyStore{Model: storetest.NewModel(start)}
	lim := newAuthzLimiter(t, keys, `{"name": "all", "limit_keys": ["`+attribute+`"], "on_missing": "skip", "algorithm_config": {"rate": "1/1s", "burst": 1}}`)
	answer, err := newAuthz(t, lim, c).Check(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	value = unset
	if parts := policy.Key(keys.key).Parts(); len(parts) > 0 {
		value = parts[0].Value
	}
	return value, outcomeOf(answer).status
}

// The client is Envoy's peer unless that peer is a trusted proxy, whether or not Envoy has appended it to the header.
func TestCheck_ClientAddress(t *testing.T) {
	none := envoyapi.AuthorizationConfig{}
	proxies := envoyapi.AuthorizationConfig{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	hops := func(n int) envoyapi.AuthorizationConfig { return envoyapi.AuthorizationConfig{TrustedHops: n} }
	for _, tt := range []struct {
		name      string
		config    envoyapi.AuthorizationConfig
		source    string
		forwarded string // the header; "" for none
		want      string
	}{
		{"no proxy", none, "203.0.113.9", "198.51.100.7", "203.0.113.9"},
		{"no proxy, IPv6", none, "2001:db8::1", "", "2001:db8::/64"},
		{"no proxy, mapped IPv4", none, "::ffff:203.0.113.9", "", "203.0.113.9"},
		{"no source", none, "", "198.51.100.7", unset},
		{"the path of a socket", none, "/run/envoy.sock", "198.51.100.7", unset},

		{"proxies, not passed", proxies, "203.0.113.9", "198.51.100.7", "203.0.113.9"},
		{"proxies, passed", proxies, "10.0.0.1", "192.0.2.66, 198.51.100.7", "198.51.100.7"},
		{"proxies, appended", proxies, "10.0.0.1", "192.0.2.66, 198.51.100.7,10.0.0.1", "198.51.100.7"},
		{"proxies, no source", proxies, "", "198.51.100.7", unset},

		{"Envoy only", hops(1), "203.0.113.9", "198.51.100.7", "203.0.113.9"},
		{"Envoy only, appended", hops(1), "203.0.113.9", "198.51.100.7,203.0.113.9", "203.0.113.9"},
		{"Envoy only, no header", hops(1), "203.0.113.9", "", "203.0.113.9"},
		{"two hops", hops(2), "10.0.0.1", "192.0.2.66, 198.51.100.7", "198.51.100.7"},
		{"two hops, appended", hops(2), "10.0.0.1", "192.0.2.66, 198.51.100.7,10.0.0.1", "198.51.100.7"},
		{"two hops, appended, IPv6", hops(2), "fd00:0::1", "198.51.100.7,fd00::1", "198.51.100.7"},
		{"two hops, only the peer", hops(2), "10.0.0.1", "10.0.0.1", "10.0.0.1"},
		{"two hops, the peer twice", hops(2), "10.0.0.1", "198.51.100.7, 10.0.0.1,10.0.0.1", "10.0.0.1"},
		{"three hops, appended", hops(3), "10.0.0.1", "192.0.2.66, 198.51.100.7, 10.0.0.2,10.0.0.1", "198.51.100.7"},
		{"two hops, no source", hops(2), "", "192.0.2.66, 198.51.100.7", "198.51.100.7"},
		{"another header", envoyapi.AuthorizationConfig{TrustedHops: 2, ForwardedHeader: "x-real-ip"}, "10.0.0.1", "192.0.2.66", "198.51.100.8"},
	} {
		for _, raw := range []bool{true, false} {
			c := call{"GET", "/", "a.example", []string{"X-Real-IP: 198.51.100.8"}}
			if tt.forwarded != "" {
				c.fields = append(c.fields, "X-Forwarded-For: "+tt.forwarded)
			}
			if got, _ := readAttribute(t, tt.config, "ip:address", c.check(tt.source, raw)); got != tt.want {
				t.Errorf("%s, raw %v: the client is %s, want %s", tt.name, raw, got, tt.want)
			}
		}
	}
}

func TestCheck_Attributes(t *testing.T) {
	c := call{"post", "/v1/%69tems;x=1/?page=2&q=a+b", "API.example:8443", []string{
		"X-Team: red", "X-Text: one, two", "Cookie: lang=s%31; t=2", "Accept: a/b", "Accept: c/d", "Host: other.example", "Authorization: bearer abc"}}
	for attribute, want := range map[string]string{
		"method": "POST", "path": "/v1/items/", "host": "api.example", "query:page": "2", "query:q": "a b", "query:none": unset,
		"header:x-team": "red", "header:x-text": "one, two", "header:none": unset, "cookie:none": unset,
		"envoy:context:tier": "gold", "envoy:context:none": unset, "envoy:context": unset, "jwt:sub": "u1", "tenant": "tenant-of-/v1/items;x=1/",
	} {
		for _, raw := range []bool{true, false} {
			req := c.check("203.0.113.9", raw)
			req.Attributes.ContextExtensions = map[string]string{"tier": "gold", "": "empty"}
			config := envoyapi.AuthorizationConfig{Attribute: func(r *http.Request, a policy.Attribute) (string, bool) {
				if a.String() == "jwt:sub" {
					return "u1", true
				}
				return "tenant-of-" + r.URL.Path, a.String() == "tenant"
			}}
			got, code := readAttribute(t, config, attribute, req)
			if got != want || code != 200 {
				t.Errorf("raw %v: %s is %q (%d), want %q", raw, attribute, got, code, want)
			}
		}
	}
}

// Envoy joins repeated fields with a comma and no space. They are still repeated.
func TestCheck_JoinedFields(t *testing.T) {
	for value, want := range map[string]int{
		"a": 200, "a, b": 200, "a,b": 400, "a,": 400, ",a": 400, "a, b,c": 400, ",": 400, "a (b, like c)": 200,
	} {
		req := call{"GET", "/", "a.example", []string{"X-Team: " + value}}.check("203.0.113.9", false)
		if _, got := readAttribute(t, envoyapi.AuthorizationConfig{}, "header:x-team", req); got != want {
			t.Errorf("X-Team: %s: got %d, want %d", value, got, want)
		}
		if _, got := readAttribute(t, envoyapi.AuthorizationConfig{}, "header:x-other", req); got != 200 {
			t.Errorf("X-Team: %s, not read: got %d, want 200", value, got)
		}
	}
}

// With a raw header, the bytes of the path count that Envoy has replaced in the text.
func TestCheck_RawPath(t *testing.T) {
	req := call{"GET", "/a\xa0", "a.example", nil}.check("203.0.113.9", true)
	req.Attributes.Request.Http.Path = "/a!"
	if value, got := readAttribute(t, envoyapi.AuthorizationConfig{}, "path", req); got != 400 {
		t.Errorf("got %d with the path %q, want 400", got, value)
	}
}

// The client chooses the target. An invalid one is a denial, and not an error that Envoy might ignore.
func TestCheck_InvalidTargets(t *testing.T) {
	client := dialAuthz(t, newAuthz(t, newAuthzLimiter(t, nil, perClient), envoyapi.AuthorizationConfig{
		OnMisuse: func(detail string) { t.Errorf("misuse: %s", detail) }}))
	for _, target := range []string{"", "x", "/%zz", "/a b", "/a\tb", "?x", "%2Fx"} {
		answer, err := client.Check(t.Context(), call{"GET", target, "a.example", nil}.check("203.0.113.9", true))
		if err != nil {
			t.Fatal(err)
		}
		got := outcomeOf(answer)
		if got.status != 400 || answer.GetStatus().GetCode() != int32(codes.PermissionDenied) || got.fields.Get("Content-Type") != "application/problem+json" ||
			answer.GetDynamicMetadata().GetFields()["reason"].GetStringValue() != "invalid_target" {
			t.Errorf("target %q: got %v, want 400", target, answer)
		}
	}
	if answer, err := client.Check(t.Context(), call{"CONNECT", "", "a.example:443", nil}.check("203.0.113.9", true)); err != nil || outcomeOf(answer).status != 200 {
		t.Errorf("CONNECT: got %v (%v), want it allowed", answer, err)
	}
}

func TestCheck_Metadata(t *testing.T) {
	client := dialAuthz(t, newAuthz(t, newAuthzLimiter(t, nil, perClient), envoyapi.AuthorizationConfig{}))
	for _, want := range []string{"per-client ", "per-client ", "per-client token_bucket_exceeded"} {
		answer, err := client.Check(t.Context(), call{"GET", "/", "a.example", nil}.check("203.0.113.9", true))
		if err != nil {
			t.Fatal(err)
		}
		fields := answer.GetDynamicMetadata().GetFields()
		if got := fields["rule"].GetStringValue() + " " + fields["reason"].GetStringValue(); got != want {
			t.Errorf("got the metadata %q, want %q", got, want)
		}
	}
	client = dialAuthz(t, newAuthz(t, newAuthzLimiter(t, downStore{}, perClient), envoyapi.AuthorizationConfig{}))
	answer, err := client.Check(t.Context(), call{"GET", "/", "a.example", nil}.check("203.0.113.9", true))
	if err != nil || !answer.GetDynamicMetadata().GetFields()["degraded"].GetBoolValue() {
		t.Errorf("without the store: got the metadata %v (%v), want degraded", answer.GetDynamicMetadata(), err)
	}
}

// The fields replace those of the service, and HTTP/2 needs them in lower case.
func TestCheck_Fields(t *testing.T) {
	a := newAuthz(t, newAuthzLimiter(t, nil, perClient), envoyapi.AuthorizationConfig{Fields: []string{"draft-11", "legacy", "x"}})
	for range 3 {
		answer, err := a.Check(t.Context(), call{"GET", "/", "a.example", nil}.check("203.0.113.9", true))
		if err != nil {
			t.Fatal(err)
		}
		list := append(answer.GetOkResponse().GetResponseHeadersToAdd(), answer.GetDeniedResponse().GetHeaders()...)
		if len(list) < 8 || len(answer.GetOkResponse().GetHeaders()) > 0 {
			t.Errorf("got the fields %v, want all dialects, and none for the service", list)
		}
		for _, option := range list {
			if name := option.GetHeader().GetKey(); name != strings.ToLower(name) || option.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
				t.Errorf("got the field %v, want lower case, and that it replaces others", option)
			}
		}
	}
}

// The policy defines the response to a denied request. The status of gRPC stays, and Envoy gets only statuses that it
// knows.
func TestCheck_Denial(t *testing.T) {
	for status, want := range map[int]int{403: 403, 503: 503, 451: 429} {
		a := newAuthz(t, newAuthzLimiter(t, nil, fmt.Sprintf(`{"name": "r", "limit_keys": [], "rate": "1/1h", "denial": {"status": %d, "body": "<{{rule}}>"}}`, status)), envoyapi.AuthorizationConfig{})
		var answer *authv3.CheckResponse
		for range 2 {
			var err error
			if answer, err = a.Check(t.Context(), call{"GET", "/", "a.example", nil}.check("203.0.113.9", true)); err != nil {
				t.Fatal(err)
			}
		}
		denied := answer.GetDeniedResponse()
		if int(denied.GetStatus().GetCode()) != want || denied.GetBody() != "<r>" || codes.Code(answer.GetStatus().GetCode()) != codes.ResourceExhausted {
			t.Errorf("status %d: got %v, want %d", status, answer, want)
		}
	}
}

func TestCheck_Misuse(t *testing.T) {
	var details []string
	config := envoyapi.AuthorizationConfig{OnMisuse: func(detail string) { details = append(details, detail) }}
	trusting := dialAuthz(t, newAuthz(t, newAuthzLimiter(t, nil, perClient), config))
	config.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	refusing := dialAuthz(t, newAuthz(t, newAuthzLimiter(t, nil, perClient), config))
	for _, tt := range []struct {
		client authv3.AuthorizationClient
		req    *authv3.CheckRequest
		code   codes.Code
		detail string
	}{
		{trusting, &authv3.CheckRequest{}, codes.InvalidArgument, "no HTTP request"},
		{trusting, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{}}, codes.InvalidArgument, "no HTTP request"},
		{trusting, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{}}}, codes.InvalidArgument, "no HTTP request"},
		{refusing, call{"GET", "/", "a.example", nil}.check("192.0.2.1", true), codes.PermissionDenied, "trusted proxies"},
	} {
		details = nil
		answer, err := tt.client.Check(t.Context(), tt.req)
		if status.Code(err) != tt.code || len(details) != 1 || !strings.Contains(details[0], tt.detail) || !strings.Contains(err.Error(), tt.detail) {
			t.Errorf("%v: got %v, %v and the details %q, want %v with %q", tt.req, answer, err, details, tt.code, tt.detail)
		}
	}
}

func TestNewAuthorization_RefusesSettings(t *testing.T) {
	lim := newAuthzLimiter(t, nil, perClient)
	for want, c := range map[string]envoyapi.AuthorizationConfig{
		"33 hops":         {TrustedHops: 33},
		"-1 hops":         {TrustedHops: -1},
		"combined":        {TrustedHops: 1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		"every address":   {TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
		"not a header":    {ForwardedHeader: "x y"},
		"max delay -1s":   {MaxDelay: -time.Second},
		"max delayed -1":  {MaxDelayed: -1},
		`"draft-12"`:      {Fields: []string{"draft-12"}},
		"is required: cr": {},
	} {
		used := lim
		if strings.HasPrefix(want, "is required") {
			used = nil
		}
		if _, err := envoyapi.NewAuthorization(used, c); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "envoyapi: authorization: ") {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

// A request waits for its turn only if the answer reaches Envoy before the deadline of the call.
func TestCheck_Waits(t *testing.T) {
	const leaky = `{"name": "leaky", "limit_keys": [], "algorithm": "leaky_bucket", "algorithm_config": {"rate": "1/10s", "queue": 5}}`
	for _, tt := range []struct {
		timeout time.Duration
		status  int
		took    time.Duration
	}{
		{0, 200, 10 * time.Second},
		{12 * time.Second, 200, 10 * time.Second},
		{11 * time.Second, 429, 0}, // 9.9 s are left
		{10 * time.Second, 429, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := newAuthzLimiter(t, storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) }), leaky)
			a := newAuthz(t, lim, envoyapi.AuthorizationConfig{DisableJitter: true})
			ask := func(timeout time.Duration) *authv3.CheckResponse {
				ctx := t.Context()
				if timeout > 0 {
					bounded, cancel := context.WithTimeout(ctx, timeout)
					defer cancel()
					ctx = bounded
				}
				answer, err := a.Check(ctx, call{"GET", "/", "a.example", nil}.check("203.0.113.9", true))
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			ask(0)
			begin := time.Now()
			if got := outcomeOf(ask(tt.timeout)).status; got != tt.status || time.Since(begin) != tt.took {
				t.Errorf("timeout %v: got %d after %v, want %d after %v", tt.timeout, got, time.Since(begin), tt.status, tt.took)
			}
		})
	}
}

// A store that is slower than the call is no decision: Envoy applies its own setting for failures.
func TestCheck_EndedCall(t *testing.T) {
	a := newAuthz(t, newAuthzLimiter(t, nil, perClient), envoyapi.AuthorizationConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if answer, err := a.Check(ctx, call{"GET", "/", "a.example", nil}.check("203.0.113.9", true)); status.Code(err) != codes.Canceled {
		t.Errorf("canceled: got %v, %v", answer, err)
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if answer, err := a.Check(ctx, call{"GET", "/", "a.example", nil}.check("203.0.113.9", true)); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("expired: got %v, %v", answer, err)
	}
}
