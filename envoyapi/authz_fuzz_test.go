// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/metehq/mete/envoyapi"
)

// readsAll reads every kind of attribute.
const readsAll = `{"name": "all", "limit_keys": ["ip:address", "method", "path", "host", "header:x-key", "query:q", "cookie:c", "jwt:sub"],
	"on_missing": "skip", "algorithm_config": {"rate": "1000/1s", "burst": 1000}},
	{"name": "context", "limit_keys": ["envoy:context:k"], "on_missing": "skip", "algorithm_config": {"rate": "1000/1s", "burst": 1000}}`

var allowedStatuses = map[int]bool{200: true, 400: true, 403: true, 429: true, 503: true}

// wantValidAnswer fails t unless an answer or an error is one that Envoy understands.
func wantValidAnswer(t *testing.T, answer *authv3.CheckResponse, err error) {
	t.Helper()
	if err != nil {
		if code := status.Code(err); code != codes.InvalidArgument {
			t.Errorf("got error %v", err)
		}
		return
	}
	if _, err := proto.Marshal(answer); err != nil {
		t.Errorf("the answer cannot be sent: %v", err)
	}
	o := outcomeOf(answer)
	if !allowedStatuses[o.status] || (o.status == 200) != (answer.GetStatus().GetCode() == 0) || o.status == 200 && o.body != "" {
		t.Errorf("got %v", answer)
	}
	for name, values := range o.fields {
		if strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") || !utf8.ValidString(strings.Join(values, "")) {
			t.Errorf("got the field %q: %q", name, values)
		}
	}
}

// FuzzCheck sends requests with hostile parts.
func FuzzCheck(f *testing.F) {
	for _, seed := range []struct {
		method, path, host, name, value, source string
		raw                                     bool
	}{
		{"GET", "/v1/items?q=1", "api.example", "x-key", "k", "203.0.113.9", true},
		{"GET", "/a/%2e%2e/b", "[::1]:80", "X-Key", "a,b", "2001:db8::1%eth0", false},
		{"", "", "", "", "", "", false},
		{"CONNECT", "", "a:443", ":path", "/other", "/run/sock", true},
		{"PRI", "*", "\xff", "x\xffkey", "\xff\x00", "\xff", true},
		{"GET", "http://u@h/p?#", "a..b", "cookie", "c=1; c=2,", "10.0.0.1", false},
		{"GET", "/" + strings.Repeat("../", 1000), strings.Repeat("a.", 1000), "x-forwarded-for", strings.Repeat("1.2.3.4,", 1000), "10.0.0.1", false},
		{"GET", "/?" + strings.Repeat("q=1&", 1000), "h", "authorization", "Bearer " + strings.Repeat("a.", 1000), "10.0.0.1", true},
		{"GET", "/", "h", "host", "other", "10.0.0.1", true},
		{"get", "//h/p", "h", "content-length", "-1", "::ffff:10.0.0.1", true},
	} {
		f.Add(seed.method, seed.path, seed.host, seed.name, seed.value, seed.source, seed.raw, uint8(2))
	}
	services := []*envoyapi.Authorization{
		newAuthz(f, newAuthzLimiter(f, nil, readsAll), envoyapi.AuthorizationConfig{UnverifiedClaims: true, TrustedHops: 2, Fields: []string{"draft-11", "legacy", "x"}}),
		newAuthz(f, newAuthzLimiter(f, nil, readsAll), envoyapi.AuthorizationConfig{ForwardedHeader: "Forwarded", TrustedHops: 1}),
	}
	f.Fuzz(func(t *testing.T, method, path, host, name, value, source string, raw bool, times uint8) {
		h := &authv3.AttributeContext_HttpRequest{Method: method, Path: path, Host: host, Headers: map[string]string{name: value, "x-key": value}}
		if raw {
			h.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{nil, {}}}
			for range times % 8 {
				h.HeaderMap.Headers = append(h.HeaderMap.Headers, &corev3.HeaderValue{Key: name, RawValue: []byte(value)}, &corev3.HeaderValue{Key: "x-key", Value: value})
			}
		}
		req := &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
			Request:           &authv3.AttributeContext_Request{Http: h},
			ContextExtensions: map[string]string{"k": value, name: host},
			Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
				SocketAddress: &corev3.SocketAddress{Address: source}}}},
		}}
		for _, a := range services {
			answer, err := a.Check(t.Context(), req)
			wantValidAnswer(t, answer, err)
		}
	})
}

// FuzzCheck_Message sends any message that the wire can carry, also one with missing parts.
func FuzzCheck_Message(f *testing.F) {
	for _, req := range []*authv3.CheckRequest{
		nil, {}, call{"GET", "/v1/items", "api.example", []string{"X-Key: k"}}.check("203.0.113.9", true), call{"GET", "/v1/items", "api.example", []string{"X-Key: k"}}.check("", false),
		{Attributes: &authv3.AttributeContext{Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{}}, Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{}}}},
	} {
		data, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	a := newAuthz(f, newAuthzLimiter(f, nil, readsAll), envoyapi.AuthorizationConfig{TrustedHops: 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &authv3.CheckRequest{}
		if proto.Unmarshal(data, req) != nil {
			return
		}
		answer, err := a.Check(t.Context(), req)
		wantValidAnswer(t, answer, err)
	})
}

// A program can call Check without a message.
func TestCheck_NilMessage(t *testing.T) {
	answer, err := newAuthz(t, newAuthzLimiter(t, nil, perClient), envoyapi.AuthorizationConfig{}).Check(t.Context(), nil)
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v, %v", answer, err)
	}
}
