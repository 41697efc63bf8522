// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/rueidis"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/storeurl"
)

// protocols are the clients of one server, by all protocols.
type protocols struct {
	*running
	rates  ratelimitv3.RateLimitServiceClient
	checks authv3.AuthorizationClient
	redis  rueidis.Client
}

func openProtocols(t *testing.T, c config.Config) *protocols {
	t.Helper()
	c.GRPCListen, c.RESPListen, c.Jitter = "127.0.0.1:0", "127.0.0.1:0", false
	c.RateLimitFields = []string{"legacy"}
	p := &protocols{running: start(t, c)}
	conn := dialGRPC(t, p.server.GRPCAddr(), nil)
	p.rates, p.checks = ratelimitv3.NewRateLimitServiceClient(conn), authv3.NewAuthorizationClient(conn)
	var err error
	p.redis, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{p.server.RESPAddr().String()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.redis.Close)
	return p
}

// A story is the report of a protocol about a decision. A protocol that cannot report a value sets it to unknown.
type story struct {
	allowed      bool
	rule, reason string
	remaining    int64
	retry        int64 // in hours, rounded up, so that stories of one situation are equal; 0 if allowed, or never
	degraded     string
}

const (
	unknown     = "unknown"
	noRemaining = -1 // no limit applies, or the limit has no bucket
	never       = -1
)

// hours returns a wait for a story.
func hours(d time.Duration) int64 {
	if d == bucket.Never {
		return never
	}
	return int64((d + time.Hour - 1) / time.Hour)
}

// Both rules have the same limit. Requests of Envoy's rate limit filter have descriptors, and requests of its
// external authorization have header fields.
const (
	byDescriptor = "descriptor:who"
	byHeader     = "header:who"
)

func (p *protocols) askHTTP(attribute, who string, cost uint64) story {
	p.t.Helper()
	_, body := post(p.t, p.main+"/v1/take", strings.NewReader(fmt.Sprintf(`{"attributes":{%q:%q},"cost":%d}`, attribute, who, cost)))
	var answer api.Decision
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		p.t.Fatalf("%v: %s", err, body)
	}
	s := story{answer.Allowed, answer.Rule, answer.Reason, noRemaining, hours(time.Duration(answer.RetryAfter)), strconv.FormatBool(answer.Degraded)}
	if len(answer.Limits) > 0 {
		s.remaining = answer.Limits[0].Remaining
	}
	return s
}

func (p *protocols) askRESP(attribute, who string, cost uint64) (s story) {
	p.t.Helper()
	command := p.redis.B().Arbitrary("METE.TAKE", "COST", fmt.Sprint(cost), attribute, who).Build()
	list, err := p.redis.Do(p.t.Context(), command).ToArray()
	if err != nil || len(list) < 9 {
		p.t.Fatalf("METE.TAKE: %v, %v", list, err)
	}
	number := func(i int) int64 {
		n, err := list[i].AsInt64()
		if err != nil {
			p.t.Fatalf("METE.TAKE: element %d: %v", i, err)
		}
		return n
	}
	s.allowed, s.remaining, s.degraded = number(0) == 0, number(2), unknown
	if retry := number(3); !s.allowed && retry >= 0 {
		s.retry = hours(time.Duration(retry) * time.Second)
	} else if !s.allowed {
		s.retry = never
	}
	s.rule, _ = list[5].ToString()
	s.reason, _ = list[6].ToString()
	return s
}

func (p *protocols) askRateLimit(_, who string, cost uint64) story {
	p.t.Helper()
	answer, err := p.rates.ShouldRateLimit(p.t.Context(), &ratelimitv3.RateLimitRequest{Domain: "d", Descriptors: []*ratelimitcommon.RateLimitDescriptor{{
		Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{{Key: "who", Value: who}}, HitsAddend: wrapperspb.UInt64(cost),
	}}})
	if err != nil {
		p.t.Fatal(err)
	}
	facts, status := answer.GetDynamicMetadata().GetFields(), answer.GetStatuses()[0]
	s := story{
		allowed: answer.GetOverallCode() == ratelimitv3.RateLimitResponse_OK, rule: facts["rule"].GetStringValue(), reason: facts["reason"].GetStringValue(),
		remaining: noRemaining, degraded: strconv.FormatBool(facts["degraded"].GetBoolValue()),
	}
	if limit := status.GetCurrentLimit(); limit != nil {
		s.rule, s.remaining = limit.GetName(), int64(status.GetLimitRemaining())
	}
	if wait := status.GetDurationUntilReset(); !s.allowed && wait != nil {
		s.retry = hours(wait.AsDuration())
	} else if !s.allowed {
		s.retry = never
	}
	return s
}

func (p *protocols) askAuthorization(_, who string, cost uint64) story {
	p.t.Helper()
	answer, err := p.checks.Check(p.t.Context(), newCheck(map[string]string{"who": who, "cost": fmt.Sprint(cost)}))
	if err != nil {
		p.t.Fatal(err)
	}
	facts := answer.GetDynamicMetadata().GetFields()
	s := story{
		allowed: answer.GetDeniedResponse() == nil, rule: facts["rule"].GetStringValue(), reason: facts["reason"].GetStringValue(),
		remaining: noRemaining, degraded: strconv.FormatBool(facts["degraded"].GetBoolValue()),
	}
	options := answer.GetOkResponse().GetResponseHeadersToAdd()
	if !s.allowed {
		options, s.retry = answer.GetDeniedResponse().GetHeaders(), never
	}
	for _, o := range options {
		n, err := strconv.ParseInt(o.GetHeader().GetValue(), 10, 64)
		switch {
		case err != nil:
		case o.GetHeader().GetKey() == "ratelimit-remaining":
			s.remaining = n
		case o.GetHeader().GetKey() == "retry-after":
			s.retry = hours(time.Duration(n) * time.Second)
		}
	}
	return s
}

// newCheck returns a request of Envoy's external authorization.
func newCheck(header map[string]string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "192.0.2.1"}}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: http.MethodGet, Path: "/", Host: "example.com", Headers: header,
		}},
	}}
}

// ruleOf returns the name of the rule that limits by an attribute.
func ruleOf(attribute string) string {
	kind, _, _ := strings.Cut(attribute, ":")
	return kind
}

// protocolPolicy returns a policy with the same limit for both kinds of attributes.
func protocolPolicy(mode, onStoreError, more string) string {
	var b strings.Builder
	b.WriteString(more + "rules:\n")
	for _, attribute := range []string{byDescriptor, byHeader} {
		fmt.Fprintf(&b, `  - name: %s
    mode: %s
    limit_keys: [%q]
    deadline: 10s
    on_store_error: %s
    algorithm: token_bucket
    algorithm_config: { rate: 1/1d, burst: 3, cost_source: "header:cost", max_cost: 100 }
`, ruleOf(attribute), mode, attribute, onStoreError)
	}
	return b.String()
}

// Every protocol reports the decision that HTTP reports.
func TestProtocols(t *testing.T) {
	t.Parallel()
	const (
		broken   = "break_glass: { enabled: true, reason: test, expires_at: 2099-01-01T00:00:00Z }\n"
		exceeded = "token_bucket_exceeded"
	)
	for _, tt := range []struct {
		name, mode, onStoreError, more string
		down                           bool     // the store
		costs                          []uint64 // of the requests; the test compares the stories of the last
		want                           story    // unless its rule is empty, ruleOf returns the rule
	}{
		{"allowed", "enforce", "open", "", false, []uint64{1}, story{true, "its", "", 2, 0, "false"}},
		{"denied", "enforce", "open", "", false, []uint64{2, 2}, story{false, "its", exceeded, 1, 24, "false"}},
		{"never", "enforce", "open", "", false, []uint64{4}, story{false, "its", exceeded, 3, never, "false"}},
		{"shadow", "shadow", "open", "", false, []uint64{2, 2}, story{true, "", "", noRemaining, 0, "false"}},
		{"degraded open", "enforce", "open", "", true, []uint64{4}, story{true, "", "", noRemaining, 0, "true"}},
		{"degraded closed", "enforce", "closed", "", true, []uint64{1}, story{false, "its", "store_error", noRemaining, 1, "true"}},
		{"degraded local", "enforce", "local", "", true, []uint64{2, 2}, story{false, "its", exceeded, 1, 24, "true"}},
		{"break glass", "enforce", "open", broken, false, []uint64{4}, story{true, "", "", noRemaining, 0, "false"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := testConfig()
			c.Policy = policyFile(t, protocolPolicy(tt.mode, tt.onStoreError, tt.more))
			var p *protocols
			if tt.down {
				e := inRedis(t)
				c.Store, c.HashKey = storeurl.MustParse(e.url), "a key of this test"
				p = openProtocols(t, c)
				e.server.Kill()
			} else {
				p = openProtocols(t, c)
			}
			for _, protocol := range []struct {
				name, attribute string
				ask             func(attribute, who string, cost uint64) story
			}{
				{"/v1/take", byDescriptor, p.askHTTP},
				{"/v1/take", byHeader, p.askHTTP},
				{"METE.TAKE", byDescriptor, p.askRESP},
				{"METE.TAKE", byHeader, p.askRESP},
				{"rate limit service", byDescriptor, p.askRateLimit},
				{"external authorization", byHeader, p.askAuthorization},
			} {
				var got story
				for _, cost := range tt.costs {
					got = protocol.ask(protocol.attribute, protocol.name, cost)
				}
				want := tt.want
				if want.rule != "" {
					want.rule = ruleOf(protocol.attribute)
				}
				switch protocol.name {
				case "METE.TAKE":
					want.degraded = unknown
				case "rate limit service", "external authorization":
					if !want.allowed { // clients of Envoy see 0, as in the RateLimit fields of every denial
						want.remaining = min(want.remaining, 0)
					}
				}
				if got != want {
					t.Errorf("%s by %s: %+v, want %+v", protocol.name, protocol.attribute, got, want)
				}
			}
		})
	}
}
