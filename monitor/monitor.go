// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/sse"
	"github.com/metehq/mete/policy"
)

const (
	// History is the time range of the samples for a new listener.
	History = 15 * time.Minute

	// TrafficWindow is the maximum window of [Monitor.Traffic].
	TrafficWindow = time.Minute

	// Interval is the time between two samples.
	Interval = time.Second

	// latencyWindow is the number of samples for a percentile. At low rates, only some decisions are timed.
	latencyWindow = 10

	// waitingFrames is the maximum number of unsent frames of a listener.
	waitingFrames = 16

	// stateSeconds is the time after which listeners get an unchanged state, to update its number of buckets.
	stateSeconds = 10
)

// A Monitor polls a source once per second for its listeners. It is safe for concurrent use and must be closed.
type Monitor struct {
	source Source
	policy func() *policy.Matcher
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}

	mu        sync.Mutex // guards the fields below
	listeners map[*Listener]struct{}
	instance  string
	state     []byte // last state frame
	compared  []byte // state without volatile parts, to detect changes
	history   []sample
	whole     []byte         // frame of the history; nil until a listener needs it
	traffic   [][]ruleSample // samples of the last seconds, newest last

	// Only the goroutine of run uses these.
	last  Totals
	past  []Totals // recent totals, for their histograms
	ticks int64    // Unix time of the last sample
}

// A Listener receives [api.TrafficState] and [api.TrafficSamples] as frames of Server-Sent Events. The monitor
// closes the channel of a listener that is too slow.
type Listener struct{ Frames chan []byte }

// New returns and starts a monitor of source and of the limiter's policy.
func New(source Source, policy func() *policy.Matcher) (*Monitor, error) {
	if source == nil || policy == nil {
		return nil, errors.New("monitor: new: source and policy are required")
	}
	h := &Monitor{source: source, policy: policy, stop: make(chan struct{}), done: make(chan struct{}), listeners: map[*Listener]struct{}{}}
	h.last, h.ticks = source.Totals(), time.Now().Unix()
	h.past = []Totals{h.last}
	state := h.State()
	h.instance = state.Instance
	h.setState(&state)
	go h.run()
	return h, nil
}

// State returns the state of the source, with the version, rules and expiry of the policy.
func (h *Monitor) State() api.ServerState {
	s := h.source.State()
	if s.Overrides == nil {
		s.Overrides = map[string]int{}
	}
	if s.Policy.Errors == nil {
		s.Policy.Errors = []string{}
	}
	if m := h.policy(); m != nil {
		s.Policy.Version, s.Policy.Rules = m.Version(), len(m.Rules())
		if t := m.Expires(); !t.IsZero() {
			s.Policy.Expires = &t
		}
	}
	return s
}

// Close stops the monitor. Listeners get no more frames.
func (h *Monitor) Close() {
	h.once.Do(func() { close(h.stop) })
	<-h.done
}

func (h *Monitor) run() {
	defer close(h.done)
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-h.stop:
			return
		case now := <-ticker.C:
			h.tick(now.Unix())
		}
	}
}

// tick takes a sample. After a gap, because the machine was busy or asleep, it spreads the counts over the
// missing seconds. If the clock was set back, it drops samples that are now in the future.
func (h *Monitor) tick(now int64) {
	totals, state := h.source.Totals(), h.State()
	elapsed := now - h.ticks
	if elapsed == 0 { // two ticks in one second: the next one covers both
		return
	}
	back := elapsed < 0 // the clock was set back
	if elapsed = min(elapsed, int64(History/Interval)); back {
		elapsed = 1
	}
	times := h.times(&totals)
	var fresh []sample
	was, is := h.last.counts(), totals.counts()
	for i := range elapsed {
		s := sample{at: now - elapsed + 1 + i, times: times}
		for j := range s.counts {
			s.counts[j] = share(is[j]-min(was[j], is[j]), elapsed, i)
		}
		fresh = append(fresh, s)
	}
	rules := rulesBetween(h.last.Rules, totals.Rules)
	h.last, h.ticks = totals, now
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.setState(&state)
	h.whole = nil
	if back {
		h.history = slices.DeleteFunc(h.history, func(s sample) bool { return s.at >= now })
	}
	h.history = append(h.history, fresh...)
	if more := len(h.history) - int(History/Interval); more > 0 {
		h.history = append(h.history[:0], h.history[more:]...)
	}
	for range min(elapsed, int64(TrafficWindow/Interval)) - 1 {
		h.traffic = append(h.traffic, nil)
	}
	h.traffic = append(h.traffic, rules)
	if more := len(h.traffic) - int(TrafficWindow/Interval); more > 0 {
		h.traffic = append(h.traffic[:0], h.traffic[more:]...)
	}
	if len(h.listeners) == 0 {
		return
	}
	frames := [][]byte{h.samplesFrame(fresh, rules)}
	if changed || now%stateSeconds == 0 {
		frames = append(frames, h.state)
	}
	for l := range h.listeners {
		h.send(l, frames)
	}
}

// share returns part i of n of count. All parts add up to count.
func share(count uint64, n, i int64) uint64 {
	part := count / uint64(n)
	if uint64(i) < count%uint64(n) {
		part++
	}
	return part
}

func (h *Monitor) times(now *Totals) (times [6]*float64) {
	before := &h.past[0]
	for i, q := range quantiles {
		times[i] = quantile(&before.Decisions, &now.Decisions, q)
		times[len(quantiles)+i] = quantile(&before.Store, &now.Store, q)
	}
	h.past = append(h.past, Totals{Decisions: now.Decisions, Store: now.Store})
	if len(h.past) > latencyWindow {
		h.past = append(h.past[:0], h.past[1:]...)
	}
	return times
}

// setState stores the state and reports whether it has changed, apart from the number of buckets.
func (h *Monitor) setState(s *api.ServerState) (changed bool) {
	f, err := sse.Frame("state", "", api.TrafficState{At: time.Now().UTC(), ServerState: *s})
	if err != nil {
		slog.Error("cannot send state to dashboards", "err", err)
		return false
	}
	h.state = f
	still := *s
	still.Store.Buckets = nil
	compared, _ := json.Marshal(still) // the state just marshaled above
	changed = !bytes.Equal(compared, h.compared)
	h.compared = compared
	return changed
}

// samplesFrame returns a frame with samples and the counts of rules in the last second.
func (h *Monitor) samplesFrame(samples []sample, rules []ruleSample) []byte {
	told := api.TrafficSamples{Step: int(Interval / time.Second), Samples: [][]any{}, Rules: [][]any{}}
	for i := range samples {
		told.Samples = append(told.Samples, samples[i].row())
	}
	for i := range rules {
		told.Rules = append(told.Rules, rules[i].row())
	}
	last := int64(0)
	if len(samples) > 0 {
		last = samples[len(samples)-1].at
	}
	f, err := sse.Frame("samples", h.instance+":"+strconv.FormatInt(last, 10), told)
	if err != nil {
		slog.Error("cannot send samples to dashboards", "err", err)
	}
	return f
}

func (h *Monitor) send(l *Listener, frames [][]byte) {
	for _, f := range frames {
		select {
		case l.Frames <- f:
		default:
			delete(h.listeners, l)
			close(l.Frames)
			return
		}
	}
}

// Listen returns a listener and its first frames: the state, and the samples after the event with the ID after,
// or all of them. The caller must call [Monitor.RemoveListener].
func (h *Monitor) Listen(after string) (l *Listener, first [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l = &Listener{make(chan []byte, waitingFrames)}
	h.listeners[l] = struct{}{}
	samples := h.since(after)
	if len(samples) < len(h.history) {
		return l, [][]byte{h.state, h.samplesFrame(samples, nil)}
	}
	if h.whole == nil { // cached, because many listeners connect at once after a proxy restarts
		h.whole = h.samplesFrame(samples, nil)
	}
	return l, [][]byte{h.state, h.whole}
}

func (h *Monitor) since(id string) []sample {
	seen, latest := int64(0), int64(0)
	if n := len(h.history); n > 0 {
		latest = h.history[n-1].at
	}
	if len(id) > len(h.instance) && id[:len(h.instance)] == h.instance {
		seen, _ = strconv.ParseInt(id[len(h.instance)+1:], 10, 64) // an invalid ID gets all samples
	}
	for i := range h.history {
		if h.history[i].at > seen || seen > latest { // seen > latest: the clock was set back
			return h.history[i:]
		}
	}
	return nil
}

// RemoveListener removes a listener.
func (h *Monitor) RemoveListener(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.listeners[l]; ok {
		delete(h.listeners, l)
		close(l.Frames)
	}
}

// Traffic returns the decisions per rule in the last seconds, at most [TrafficWindow].
func (h *Monitor) Traffic(window time.Duration) api.Traffic {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]api.RuleCounts{}
	for _, rules := range h.traffic[max(len(h.traffic)-int(window/Interval), 0):] {
		for i := range rules {
			sum := all[rules[i].rule]
			for j, n := range rules[i].counts {
				sum[j] += n
			}
			all[rules[i].rule] = sum
		}
	}
	return api.Traffic{Window: window.Seconds(), Rules: all}
}
