// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// shared reports whether calls made one after the other share a bucket, which
// holds one token.
func shared(t *testing.T, key string, config grpclimit.Config, calls ...context.Context) bool {
	t.Helper()
	rules := `{"name": "r", "limit_keys": ["` + key + `"], "on_missing": "deny", "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 1}}`
	unary := newInterceptor(t, newLimiter(t, storetest.NewModel(now), rules), config).Unary()
	denied := 0
	for _, ctx := range calls {
		_, err := unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: unaryCall}, func(context.Context, any) (any, error) { return nil, nil })
		switch status.Code(err) {
		case codes.OK:
		case codes.ResourceExhausted:
			denied++
		default:
			t.Errorf("key %s: %v", key, err)
		}
	}
	return denied == len(calls)-1
}

// from is the context of a call from an address with metadata.
func from(address string, pairs ...string) context.Context {
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs(pairs...))
	if address == "" {
		return ctx
	}
	return peer.NewContext(ctx, &peer.Peer{Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))})
}

func TestAttributes(t *testing.T) {
	ten := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	const proxy, other, forwarded = "10.0.0.1:80", "198.51.100.1:80", "x-forwarded-for"
	for _, tt := range []struct {
		what, key string
		config    grpclimit.Config
		one, two  context.Context
		want      bool // that they share a bucket
	}{
		{"one header", "header:x-k", grpclimit.Config{}, from("", "x-k", "a"), from("", "X-K", "a"), true},
		{"two headers", "header:x-k", grpclimit.Config{}, from("", "x-k", "a"), from("", "x-k", "b"), false},
		{"lines of a list", "header:accept", grpclimit.Config{}, from("", "accept", "a", "accept", "c"), from("", "accept", "a, c"), true},
		{"one token", "header:authorization", grpclimit.Config{}, from("", "authorization", "Bearer x"), from("", "authorization", "bearer  x"), true},
		{"binary", "header:x-k-bin", grpclimit.Config{}, from("", "x-k-bin", "\x00\xff"), from("", "x-k-bin", "\x00\xfe"), false},
		{"empty", "header:x-k", grpclimit.Config{}, from("", "x-k", ""), from("", "x-k", ""), true},
		{"long", "header:x-k", grpclimit.Config{}, from("", "x-k", strings.Repeat("a", 1<<16)), from("", "x-k", strings.Repeat("a", 1<<16)+"b"), false},
		{"host", "host", grpclimit.Config{}, from("", ":authority", "A.example.:1"), from("", ":authority", "a.example"), true},
		{"header host", "header:host", grpclimit.Config{}, from("", ":authority", "a"), from("", ":authority", "b"), false},
		{"cookie", "cookie:s", grpclimit.Config{}, from("", "cookie", "t=1; s=2"), from("", "cookie", "s=2; t=3"), true},
		{"method", "method", grpclimit.Config{}, from(""), from(""), true},
		{"path", "path", grpclimit.Config{}, from(""), from(""), true},
		{"ports", "ip:address", grpclimit.Config{}, from(other), from("198.51.100.1:81"), true},
		{"peers", "ip:address", grpclimit.Config{}, from(other), from(proxy), false},
		{"one IPv6 network", "ip:address", grpclimit.Config{}, from("[2001:db8::1]:1"), from("[2001:db8::ffff]:1"), true},
		{"IPv4-mapped", "ip:address", grpclimit.Config{}, from("[::ffff:10.0.0.1]:1"), from(proxy), true},
		{"spoofed", "ip:address", grpclimit.Config{}, from(other, forwarded, "1.1.1.1"), from(other, forwarded, "2.2.2.2"), true},
		{"spoofed through a proxy", "ip:address", grpclimit.Config{TrustedProxies: ten}, from(proxy, forwarded, "1.1.1.1, 9.9.9.9"), from(proxy, forwarded, "2.2.2.2, 9.9.9.9"), true},
		{"behind a proxy", "ip:address", grpclimit.Config{TrustedProxies: ten}, from(proxy, forwarded, "1.1.1.1"), from(proxy, forwarded, "2.2.2.2"), false},
		{"around the proxy", "ip:address", grpclimit.Config{TrustedProxies: ten}, from(other, forwarded, "1.1.1.1"), from(other, forwarded, "2.2.2.2"), true},
		{"hops", "ip:address", grpclimit.Config{TrustedHops: 1}, from(other, forwarded, "9.9.9.9, 1.1.1.1"), from(other, forwarded, "9.9.9.9, 2.2.2.2"), false},
		{"RFC 7239", "ip:address", grpclimit.Config{TrustedHops: 1, ForwardedKey: "forwarded"}, from(other, "forwarded", "for=1.1.1.1"), from(other, "forwarded", "for=2.2.2.2"), false},
		{"another key", "ip:address", grpclimit.Config{TrustedHops: 1, ForwardedKey: "x-real-ip"}, from(other, "x-real-ip", "1.1.1.1", forwarded, "3.3.3.3"), from(other, "x-real-ip", "1.1.1.1", forwarded, "4.4.4.4"), true},
	} {
		if got := shared(t, tt.key, tt.config, tt.one, tt.two); got != tt.want {
			t.Errorf("%s: one bucket %v, want %v", tt.what, got, tt.want)
		}
	}
}

// Missing attributes are missing, and nothing panics.
func TestAttributes_Missing(t *testing.T) {
	for _, key := range []string{"header:x-k", "header:host", "host", "cookie:s", "ip:address", "query:q", "jwt:sub", "tenant"} {
		rules := `{"name": "r", "limit_keys": ["` + key + `"], "on_missing": "deny", "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}`
		unary := newInterceptor(t, newLimiter(t, storetest.NewModel(now), rules), grpclimit.Config{}).Unary()
		for name, ctx := range map[string]context.Context{
			"bare":      t.Context(),
			"no values": metadata.NewIncomingContext(t.Context(), metadata.MD{"x-k": {}, ":authority": nil, "cookie": {""}}),
			"no peer":   peer.NewContext(t.Context(), &peer.Peer{}),
			"a pipe":    peer.NewContext(t.Context(), &peer.Peer{Addr: &net.UnixAddr{Name: "@"}}),
		} {
			_, err := unary(ctx, nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, nil })
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s, %s: got %v, want PermissionDenied", key, name, err)
			}
		}
	}
}

// The server hands on what a real call has.
func TestAttributes_OfACall(t *testing.T) {
	const rules = `{"name": "r", "limit_keys": ["tenant", "jwt:sub"], "on_missing": "deny",
		"match": {"method": "POST", "path": "` + unaryCall + `", "host": "test.example", "header:x-k": "v"},
		"algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 1}}`
	client := limited(t, rules, grpclimit.Config{Attribute: func(ctx context.Context, a policy.Attribute) (string, bool) {
		method, _ := grpc.Method(ctx)
		return a.String(), method == unaryCall
	}})
	for i, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		if _, err := client.UnaryCall(as(t.Context(), "x-k", "v"), &pb.SimpleRequest{}); status.Code(err) != want {
			t.Errorf("call %d: got %v, want %v", i, err, want)
		}
		if _, err := client.EmptyCall(as(t.Context(), "x-k", "v"), &pb.Empty{}); err != nil {
			t.Errorf("another method: %v", err)
		}
	}
}

func perHour(t testing.TB, tokens int) bucket.Limit {
	t.Helper()
	l, err := bucket.NewLimit(bucket.Tokens(tokens)*bucket.Token, bucket.Rate{Tokens: bucket.Tokens(tokens) * bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Limits of methods need no policy, have names of their own, and go with one.
func TestMethods(t *testing.T) {
	methods := []grpclimit.MethodLimit{
		{Name: "unary", Methods: []string{unaryCall}, Key: grpclimit.By("header:x-k"), Bucket: perHour(t, 2)},
		{Name: "service", Methods: []string{"/grpc.testing.TestService/*"}, Key: grpclimit.Everyone(), Bucket: perHour(t, 10), Cost: 3},
		{Name: "others", Methods: []string{"/other.Service/*"}, Key: grpclimit.Everyone(), Bucket: perHour(t, 1)},
	}
	const rules = `{"name": "free", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 100}}`
	for _, policy := range []string{"", rules} {
		client := limited(t, policy, grpclimit.Config{Methods: methods})
		for i, tt := range []struct {
			key     string
			empty   bool
			want    codes.Code
			violate string
			trailer string // part of ratelimit
		}{
			{"a", false, codes.OK, "", `"unary";r=1;t=1800, "service";r=7;t=`},
			{"a", false, codes.OK, "", `"unary";r=0;t=1800, "service";r=4;t=`},
			{"a", false, codes.ResourceExhausted, "rule:unary", `"unary";r=0;`},
			{"", false, codes.PermissionDenied, "", ""},
			{"", true, codes.OK, "", `"service";r=1;`},
			{"b", false, codes.ResourceExhausted, "rule:service", `"service";r=0;`},
		} {
			ctx, trailer := t.Context(), metadata.MD(nil)
			if tt.key != "" {
				ctx = as(ctx, "x-k", tt.key)
			}
			_, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Trailer(&trailer))
			if tt.empty {
				_, err = client.EmptyCall(ctx, &pb.Empty{}, grpc.Trailer(&trailer))
			}
			code, _, quota := details(t, err)
			subject := ""
			for _, v := range quota.GetViolations() {
				subject += v.Subject
			}
			if all := strings.Join(trailer["ratelimit"], ""); code != tt.want || subject != tt.violate || !strings.Contains(all, tt.trailer) {
				t.Errorf("policy %q, call %d: got %v, violations %q, ratelimit %q, want %v, %q, %q", policy, i, err, subject, all, tt.want, tt.violate, tt.trailer)
			}
		}
	}
}

func TestMethods_Errors(t *testing.T) {
	ok := grpclimit.MethodLimit{Name: "a", Methods: []string{"*"}, Key: grpclimit.Everyone(), Bucket: perHour(t, 1)}
	change := func(f func(*grpclimit.MethodLimit)) []grpclimit.MethodLimit {
		l := ok
		f(&l)
		return []grpclimit.MethodLimit{l}
	}
	lim := newLimiter(t, storetest.NewModel(now), oneASecond)
	for what, methods := range map[string][]grpclimit.MethodLimit{
		"no name":       change(func(l *grpclimit.MethodLimit) { l.Name = "" }),
		"bad name":      change(func(l *grpclimit.MethodLimit) { l.Name = "ä" }),
		"no methods":    change(func(l *grpclimit.MethodLimit) { l.Methods = nil }),
		"no key":        change(func(l *grpclimit.MethodLimit) { l.Key = grpclimit.Key{} }),
		"an empty key":  change(func(l *grpclimit.MethodLimit) { l.Key = grpclimit.By() }),
		"a bad key":     change(func(l *grpclimit.MethodLimit) { l.Key = grpclimit.By("adress:ip", "Ö") }),
		"dear":          change(func(l *grpclimit.MethodLimit) { l.Cost = 2 }),
		"split":         change(func(l *grpclimit.MethodLimit) { l.Shards = 2 }),
		"no limit":      change(func(l *grpclimit.MethodLimit) { l.Bucket = bucket.Limit{} }),
		"no burst":      change(func(l *grpclimit.MethodLimit) { l.Bucket, l.Rate = bucket.Limit{}, "1/1h" }),
		"a bad rate":    change(func(l *grpclimit.MethodLimit) { l.Bucket, l.Rate, l.Burst = bucket.Limit{}, "1h", 1 }),
		"two limits":    change(func(l *grpclimit.MethodLimit) { l.Rate, l.Burst = "1/1h", 1 }),
		"negative cost": change(func(l *grpclimit.MethodLimit) { l.Cost = -1 }),
		"the same name": {ok, ok},
		"too many":      make([]grpclimit.MethodLimit, grpclimit.MaxMethodLimits+1),
	} {
		if _, err := grpclimit.New(lim, grpclimit.Config{Methods: methods}); err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
	if _, err := grpclimit.New(lim, grpclimit.Config{Methods: []grpclimit.MethodLimit{ok}}); err != nil {
		t.Errorf("none of them: %v", err)
	}
}

// A call is not counted under one value and served under another: metadata and cookies
// that a rule reads occur once.
func TestAttributes_RejectsDuplicates(t *testing.T) {
	rules := `{"rules": [
		{"name": "key", "limit_keys": ["header:x-k"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 100}},
		{"name": "session", "limit_keys": ["cookie:s"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 100}},
		{"name": "user", "limit_keys": ["jwt:sub"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 100}},
		{"name": "shadow", "mode": "shadow", "limit_keys": ["header:x-shadow"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 100}}]}`
	unary := newInterceptor(t, newLimiter(t, storetest.NewModel(now), rules), grpclimit.Config{}).Unary()
	for _, tt := range []struct {
		ctx  context.Context
		want codes.Code
	}{
		{from("", "x-k", "a", "x-other", "b", "x-other", "c", "cookie", "s=1", "cookie", "t=2"), codes.OK},
		{from("", "x-k", "a", "x-k", "real"), codes.InvalidArgument},
		{from("", "cookie", "s=1; s=2"), codes.InvalidArgument},
		{from("", "cookie", "s=1", "cookie", "s=2"), codes.InvalidArgument},
		{from("", "authorization", "Bearer a", "authorization", "Bearer b"), codes.InvalidArgument},
		{from("", "x-shadow", "a", "x-shadow", "b"), codes.OK},
	} {
		reached := false
		_, err := unary(tt.ctx, nil, &grpc.UnaryServerInfo{FullMethod: unaryCall}, func(context.Context, any) (any, error) {
			reached = true
			return nil, nil
		})
		if got := status.Code(err); got != tt.want || reached != (tt.want == codes.OK) {
			t.Errorf("got %v, and the handler was reached: %v; want %v", err, reached, tt.want)
		}
	}
}
