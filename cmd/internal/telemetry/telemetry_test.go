// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// patience bounds every wait of these tests. Nothing waits that long.
const patience = time.Minute

// parsed returns a URL that is valid.
func parsed(raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return u
}

// config exports to a collector, and traces every request.
func (c *collector) config() telemetry.Config {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mete_things_total", Help: "Things."}, []string{"kind"})
	counter.WithLabelValues("good").Add(7)
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "mete_times_seconds", Help: "Times.", Buckets: []float64{1, 2}})
	histogram.Observe(1.5)
	registry.MustRegister(counter, histogram)
	return telemetry.Config{
		Endpoint: parsed(c.URL), Headers: map[string]string{"Authorization": "Bearer collector"}, Sample: 1, Interval: time.Hour,
		Service: "mete", Version: "1.2.3", Metrics: registry, Failed: func(err error) { c.t.Errorf("export: %v", err) },
	}
}

func open(t *testing.T, c telemetry.Config) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tel.Close(context.Background()) })
	return tel
}

// A watched handler asks a limiter about each request.
type watched struct {
	t       *testing.T
	handler http.Handler
	lim     *mete.Limiter
	timed   atomic.Int64
	traces  sync.Map // trace IDs that decisions were timed with
	seen    atomic.Value
}

const onePolicy = `{"rules": [{"name": "one", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1d", "burst": 1}}]}`

func watch(t *testing.T, tel *telemetry.Telemetry, requests int) *watched {
	t.Helper()
	m, err := policy.Load([]byte(onePolicy), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t}
	look := telemetry.NewWatch(tel, func(door string, took time.Duration, trace string) {
		if door != "proxy" || took <= 0 {
			t.Errorf("got door %q and %v, want proxy and a time", door, took)
		}
		w.timed.Add(1)
		w.traces.Store(trace, true)
	})
	if w.lim, err = mete.New(store, m, mete.Config{OnDecision: look.RecordDecision}); err != nil {
		t.Fatal(err)
	}
	next := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.seen.Store(r.Header.Clone())
		allowed := true
		for range requests {
			d, err := w.lim.Take(r.Context(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": r.Header.Get("X-API-Key")}})
			if err != nil {
				t.Error(err)
			}
			allowed = allowed && d.Allowed
		}
		if !allowed {
			rw.WriteHeader(http.StatusTooManyRequests)
		}
	})
	door := func(r *http.Request) string {
		if r.URL.Path == "/livez" {
			return ""
		}
		return "proxy"
	}
	w.handler = look.Wrap(door, true, next)
	return w
}

// ask sends a request, and returns its status and the header that went on.
func (w *watched) ask(header map[string]string) (int, http.Header) {
	r := httptest.NewRequest("GET", "/orders/canary-path?canary=query", nil)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec.Code, w.seen.Load().(http.Header)
}

const (
	parentTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentSpan  = "00f067aa0ba902b7"
)

func TestSpans_OfDecisions(t *testing.T) {
	c := newCollector(t)
	tel := open(t, c.config())
	w := watch(t, tel, 1)
	for i, want := range []int{200, 429} {
		if got, _ := w.ask(map[string]string{"X-API-Key": "canary-key", "Cookie": "canary-cookie", "Authorization": "Bearer canary-token"}); got != want {
			t.Errorf("request %d: got %d, want %d", i, got, want)
		}
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.spans) != 2 {
		t.Fatalf("got %d spans, want 2", len(c.spans))
	}
	if got := c.header.Get("Authorization"); got != "Bearer collector" {
		t.Errorf("the exports had Authorization %q, want the configured one", got)
	}
	if c.resource["service.name"] != "mete" || c.resource["service.version"] != "1.2.3" {
		t.Errorf("got the resource %v, want the name and the version", c.resource)
	}
	for i, outcome := range []string{"allowed", "denied"} {
		s := c.spans[i]
		attrs := attributes(s)
		if s.Name != "mete proxy" || attrs["mete.rule"] != "one" || attrs["mete.outcome"] != outcome || attrs["http.request.method"] != "GET" {
			t.Errorf("got span %q with %v, want mete proxy of rule one, %s", s.Name, attrs, outcome)
		}
		if len(s.Events) != 1 || s.Events[0].Name != "decided" {
			t.Errorf("got events %v, want one: decided", s.Events)
		}
		if _, ok := w.traces.Load(hex.EncodeToString(s.TraceId)); !ok {
			t.Errorf("no decision was timed in trace %x", s.TraceId)
		}
	}
	if bytes.Contains(c.wire, []byte("canary")) {
		t.Error("the collector was sent what a client had sent")
	}
	if s := tel.Stats(); s != (telemetry.Stats{Spans: 2, Exported: 2}) {
		t.Errorf("got %+v, want 2 spans exported", s)
	}
}

// A trace goes on through the proxy; one that its parent does not sample is not
// sampled here, and passes as it came.
func TestSpans_FollowTheirParent(t *testing.T) {
	for _, sampled := range []bool{true, false} {
		c := newCollector(t)
		config := c.config()
		config.Sample = map[bool]float64{true: 0, false: 1}[sampled] // the parent decides
		tel := open(t, config)
		w := watch(t, tel, 1)
		parent := fmt.Sprintf("00-%s-%s-0%d", parentTrace, parentSpan, map[bool]int{true: 1, false: 0}[sampled])
		_, onward := w.ask(map[string]string{"traceparent": parent, "tracestate": "vendor=1"})
		if err := tel.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !sampled {
			if len(c.spans) != 0 || onward.Get("Traceparent") != parent || onward.Get("Tracestate") != "vendor=1" {
				t.Errorf("got %d spans, and %q was passed on; want none, and %q as it came", len(c.spans), onward.Get("Traceparent"), parent)
			}
			continue
		}
		if len(c.spans) != 1 {
			t.Fatalf("got %d spans, want 1", len(c.spans))
		}
		s := c.spans[0]
		if hex.EncodeToString(s.TraceId) != parentTrace || hex.EncodeToString(s.ParentSpanId) != parentSpan {
			t.Errorf("got a span of trace %x below %x, want those of %s", s.TraceId, s.ParentSpanId, parent)
		}
		if want := fmt.Sprintf("00-%s-%x-01", parentTrace, s.SpanId); onward.Get("Traceparent") != want || onward.Get("Tracestate") != "vendor=1" {
			t.Errorf("%v was passed on, want traceparent %s and its state", onward, want)
		}
	}
}

// An invalid traceparent is ignored.
func TestSpans_BadParents(t *testing.T) {
	c := newCollector(t)
	tel := open(t, c.config())
	w := watch(t, tel, 1)
	bad := []string{"", "00", "ff-" + parentTrace + "-" + parentSpan + "-01", "00-" + strings.Repeat("0", 32) + "-" + parentSpan + "-01",
		"00-" + parentTrace + "-" + parentSpan, strings.Repeat("0", 4096), "00-\x00-\x00-01"}
	for _, parent := range bad {
		w.ask(map[string]string{"traceparent": parent})
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.spans) != len(bad) {
		t.Fatalf("got %d spans, want %d", len(c.spans), len(bad))
	}
	for i, s := range c.spans {
		if len(s.ParentSpanId) != 0 || hex.EncodeToString(s.TraceId) == parentTrace {
			t.Errorf("traceparent %q was taken for a parent", bad[i])
		}
	}
}

func TestSpans_OfABatch(t *testing.T) {
	c := newCollector(t)
	tel := open(t, c.config())
	w := watch(t, tel, 5)
	w.ask(map[string]string{"X-API-Key": "k"})
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	attrs := attributes(c.spans[0])
	if attrs["mete.outcome"] != "denied" || attrs["mete.decisions"] != "int_value:5" || attrs["mete.denied"] != "int_value:4" {
		t.Errorf("got %v, want 4 of 5 denied", attrs)
	}
	if got := w.timed.Load(); got != 1 {
		t.Errorf("a batch was timed %d times, want once", got)
	}
}

// Without tracing, a sample of the requests is timed, and no span is created.
func TestSample(t *testing.T) {
	c := newCollector(t)
	config := c.config()
	config.Sample = 0.25
	tel := open(t, config)
	w := watch(t, tel, 1)
	const n = 4000
	for range n {
		w.ask(nil)
	}
	if s := tel.Stats().Spans; s < n/8 || s > n/2 {
		t.Errorf("%d of %d requests were traced, want a quarter", s, n)
	}
	off := watch(t, nil, 1)
	for range n {
		off.ask(map[string]string{"traceparent": "00-" + parentTrace + "-" + parentSpan + "-01"})
	}
	if got := off.timed.Load(); got < n/32 || got > n/8 {
		t.Errorf("%d of %d requests were timed, want a sixteenth", got, n)
	}
}

func TestMetrics_AreThoseOfTheRegistry(t *testing.T) {
	c := newCollector(t)
	tel := open(t, c.config())
	if err := tel.Close(t.Context()); err != nil { // exports them once more
		t.Fatal(err)
	}
	things, times := c.metrics["mete_things_total"], c.metrics["mete_times_seconds"]
	if things == nil || times == nil {
		t.Fatalf("got %v, want both metrics", c.metrics)
	}
	sum := things.GetSum()
	if !sum.GetIsMonotonic() || len(sum.GetDataPoints()) != 1 || sum.GetDataPoints()[0].GetAsDouble() != 7 {
		t.Errorf("got %v, want a counter at 7", things)
	}
	if p := times.GetHistogram().GetDataPoints(); len(p) != 1 || p[0].GetCount() != 1 || p[0].GetSum() != 1.5 {
		t.Errorf("got %v, want a histogram of one value", times)
	}
}

// While the collector fails, requests go on, failures are counted and told, and the
// end does not wait for longer than it is given.
func TestCollectorThatFails(t *testing.T) {
	refused := httptest.NewServer(http.NotFoundHandler())
	refused.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	broken := newCollector(t)
	broken.status = http.StatusBadRequest
	for name, address := range map[string]string{"refuses": refused.URL, "is silent": "http://" + silent.Addr().String(), "answers 400": broken.URL} {
		t.Run(name, func(t *testing.T) {
			var failures atomic.Int64
			config := newCollector(t).config()
			config.Endpoint, config.Failed = parsed(address), func(error) { failures.Add(1) }
			tel := open(t, config)
			w := watch(t, tel, 1)
			const n = 5000 // more than fit in the queue
			for range n {
				w.ask(map[string]string{"X-API-Key": "k"})
			}
			within := 100 * time.Millisecond
			if name == "answers 400" {
				within = patience / 2 // the answer is immediate, except on a busy machine
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- tel.Close(ctx) }()
			select {
			case <-ended: // with an error or not
			case <-time.After(patience):
				t.Fatal("closing goes on")
			}
			if s := tel.Stats(); s.Spans != n || s.Exported != 0 {
				t.Errorf("got %+v, want %d spans and none exported", s, n)
			}
			if name == "answers 400" && failures.Load() == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

func TestNew_BadEndpoints(t *testing.T) {
	for _, endpoint := range []*url.URL{nil, {}, parsed("localhost"), parsed("http://")} {
		if tel, err := telemetry.New(t.Context(), telemetry.Config{Endpoint: endpoint}); err == nil || tel != nil {
			t.Errorf("endpoint %v: got %v, %v, want an error", endpoint, tel, err)
		}
	}
}

// A nil Telemetry is one that is off.
func TestNil(t *testing.T) {
	var tel *telemetry.Telemetry
	if s := tel.Stats(); s != (telemetry.Stats{}) {
		t.Errorf("got %+v", s)
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A handler finds below it what the connection can do.
func TestWrap_PassesTheConnectionOn(t *testing.T) {
	c := newCollector(t)
	look := telemetry.NewWatch(open(t, c.config()), func(string, time.Duration, string) {})
	server := httptest.NewServer(look.Wrap(func(*http.Request) string { return "proxy" }, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !trace.SpanFromContext(r.Context()).SpanContext().IsValid() {
			t.Error("the request has no span")
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		buf.Flush()
	})))
	defer server.Close()
	r, err := http.NewRequest("GET", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	propagation.TraceContext{}.Inject(t.Context(), propagation.HeaderCarrier(r.Header))
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "x")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("got %s, want 101", answer.Status)
	}
}
