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
	// History is the time that a new listener gets samples of.
	History = 15 * time.Minute

	// TrafficWindow is the longest window of [Monitor.Traffic].
	TrafficWindow = time.Minute

	// Interval is the time between two samples.
	Interval = time.Second

	// latencyWindow is how many samples a percentile is taken from: of few decisions a
	// second only some are timed.
	latencyWindow = 10

	// waitingFrames is the number of frames that a listener may be behind.
	waitingFrames = 16

	// stateSeconds is the time after which listeners get an unchanged state, because the
	// number of buckets in it has changed.
	stateSeconds = 10
)

// A Monitor asks a source once a second, and sends its samples to all listeners. It is safe
// for concurrent use, and must be closed.
type Monitor struct {
	source Source
	policy func() *policy.Matcher
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}

	mu        sync.Mutex // guards the fields below
	listeners map[*Listener]struct{}
	instance  string
	state     []byte // the last frame of it
	compared  []byte // what it is compared by
	history   []sample
	whole     []byte         // its frame; nil until a listener needs it
	traffic   [][]ruleSample // of the last seconds, the newest last

	// Only the goroutine that ticks uses these.
	last  Totals
	past  []Totals // the last ones, of which only the histograms count
	ticks int64    // when the last sample was taken, in Unix seconds
}

// A Listener gets the events of [api.TrafficState] and [api.TrafficSamples], each as a frame
// of Server-Sent Events. The monitor closes the channel of a listener that is too slow.
type Listener struct{ Frames chan []byte }

// New returns a monitor of a source and of the limiter's policy, and starts it.
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

// Close stops to ask the source. Listeners get no more frames.
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

// tick takes a sample. Where the last is longer ago than a second, because the machine
// was busy or asleep, what was counted since is spread over as many samples. Where it is
// later than now, because the clock was set back, those that are not past are forgotten.
func (h *Monitor) tick(now int64) {
	totals, state := h.source.Totals(), h.State()
	elapsed := now - h.ticks
	if elapsed == 0 { // two ticks in one second: the next one has it all
		return
	}
	back := elapsed < 0 // the clock was set
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
		h.tell(l, frames)
	}
}

// share is the i'th of n parts of what was counted: whole numbers that add up to it.
func share(count uint64, n, i int64) uint64 {
	part := count / uint64(n)
	if uint64(i) < count%uint64(n) {
		part++
	}
	return part
}

// times are the percentiles of the last seconds.
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

// setState remembers the state, and reports whether it is another than before. What a
// store has in it changes all the time and is no reason to tell.
func (h *Monitor) setState(s *api.ServerState) (changed bool) {
	f, err := sse.Frame("state", "", api.TrafficState{At: time.Now().UTC(), ServerState: *s})
	if err != nil {
		slog.Error("cannot send state to dashboards", "err", err)
		return false
	}
	h.state = f
	still := *s
	still.Store.Buckets = nil
	compared, _ := json.Marshal(still) // as it was a moment ago
	changed = !bytes.Equal(compared, h.compared)
	h.compared = compared
	return changed
}

// samplesFrame tells samples, and what rules did in the last second.
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

// tell leaves frames for a listener, or gives up on one that is too far behind.
func (h *Monitor) tell(l *Listener, frames [][]byte) {
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

// Listen returns a listener and its first frames: the state, and the samples after the
// event with that ID, or all of them. The caller ends it by [Monitor.Leave].
func (h *Monitor) Listen(after string) (l *Listener, first [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l = &Listener{make(chan []byte, waitingFrames)}
	h.listeners[l] = struct{}{}
	samples := h.since(after)
	if len(samples) < len(h.history) {
		return l, [][]byte{h.state, h.samplesFrame(samples, nil)}
	}
	if h.whole == nil { // many come at once where a proxy was away
		h.whole = h.samplesFrame(samples, nil)
	}
	return l, [][]byte{h.state, h.whole}
}

// since are the samples after one of this instance.
func (h *Monitor) since(id string) []sample {
	seen, latest := int64(0), int64(0)
	if n := len(h.history); n > 0 {
		latest = h.history[n-1].at
	}
	if len(id) > len(h.instance) && id[:len(h.instance)] == h.instance {
		seen, _ = strconv.ParseInt(id[len(h.instance)+1:], 10, 64) // what is wrong gets all
	}
	for i := range h.history {
		if h.history[i].at > seen || seen > latest { // which was before the clock was set back
			return h.history[i:]
		}
	}
	return nil
}

// Leave ends a listener.
func (h *Monitor) Leave(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.listeners[l]; ok {
		delete(h.listeners, l)
		close(l.Frames)
	}
}

// Traffic returns the decisions of rules in the last seconds, of at most [TrafficWindow].
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
