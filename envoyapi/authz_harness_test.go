// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/envoyapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

var errDown = errors.New("dial tcp 192.0.2.7:6379: connection refused")

// A downStore answers nothing.
type downStore struct{}

func (downStore) err(op string) error {
	return &mete.StoreError{Op: op, Store: "down", Err: errDown}
}

func (s downStore) Take(context.Context, []bucket.Snapshot, []store.Charge, mete.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, s.err("take")
}
func (s downStore) DeriveKey(context.Context, string) (key [32]byte, err error) { return }
func (s downStore) Refund(context.Context, []mete.Refund, string) error         { return s.err("refund") }
func (s downStore) Reset(context.Context, []string) error                       { return s.err("reset") }
func (s downStore) Ping(context.Context) error                                  { return s.err("ping") }

// start is the time at which all clocks of these tests stand still.
func start() bucket.Instant { return 1_700_000_000_000_000 }

// newAuthzLimiter returns a limiter over a store, or over a new one if s is nil.
func newAuthzLimiter(t testing.TB, s mete.Store, rules string) *mete.Limiter {
	t.Helper()
	if !strings.HasPrefix(rules, `{"rules"`) {
		rules = `{"rules": [` + rules + `]}`
	}
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		s = storetest.NewModel(start)
	}
	lim, err := mete.New(s, m, mete.Config{Local: storetest.NewModel(start), Now: start})
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// dialAuthz serves a over TCP and returns a client of it.
func dialAuthz(t testing.TB, a *envoyapi.Authorization) authv3.AuthorizationClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	authv3.RegisterAuthorizationServer(s, a)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return authv3.NewAuthorizationClient(conn)
}

func newAuthz(t testing.TB, lim *mete.Limiter, c envoyapi.AuthorizationConfig) *envoyapi.Authorization {
	t.Helper()
	a, err := envoyapi.NewAuthorization(lim, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A call is a request of a client. The fields of the header are "Name: value".
type call struct {
	method, target, host string
	fields               []string
}

// check returns the call as Envoy describes it, from a client at source, with the header raw or joined.
func (c call) check(source string, raw bool) *authv3.CheckRequest {
	h := &authv3.AttributeContext_HttpRequest{Method: c.method, Path: c.target, Host: c.host, Scheme: "https", Protocol: "HTTP/1.1"}
	fields := append([]string{":method: " + c.method, ":path: " + c.target, ":authority: " + c.host}, c.fields...)
	if raw {
		h.HeaderMap = &corev3.HeaderMap{}
	} else {
		h.Headers = map[string]string{}
	}
	for _, field := range fields {
		name, value, _ := cutField(field)
		name = strings.ToLower(name)
		old, repeated := h.Headers[name]
		switch {
		case raw:
			h.HeaderMap.Headers = append(h.HeaderMap.Headers, &corev3.HeaderValue{Key: name, RawValue: []byte(value)})
		case repeated:
			h.Headers[name] = old + "," + value
		default:
			h.Headers[name] = value
		}
	}
	all := &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{Http: h}}
	if source != "" {
		all.Source = &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: source, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 4711}}}}}
	}
	return &authv3.CheckRequest{Attributes: all}
}

// An outcome is a response in the terms of HTTP.
type outcome struct {
	status int
	fields http.Header
	body   string
}

func outcomeOf(r *authv3.CheckResponse) outcome {
	o := outcome{status: http.StatusOK, fields: http.Header{}}
	list := r.GetOkResponse().GetResponseHeadersToAdd()
	if denied := r.GetDeniedResponse(); denied != nil {
		o.status, o.body, list = int(denied.GetStatus().GetCode()), denied.GetBody(), denied.GetHeaders()
	}
	for _, option := range list {
		o.fields.Add(option.GetHeader().GetKey(), option.GetHeader().GetValue())
	}
	return o
}

func cutField(field string) (name, value string, ok bool) { return strings.Cut(field, ": ") }
