// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/metehq/mete/policy"
)

const (
	// History is how much of the past a page has that is opened now.
	History = 15 * time.Minute

	// TrafficWindow is for how long it is known what single rules did.
	TrafficWindow = time.Minute

	// interval is the time between two samples.
	interval = time.Second

	// latencyWindow is how many samples a percentile is taken from: of few decisions a
	// second only some are timed.
	latencyWindow = 10

	// waitingFrames is how many frames a viewer may be behind.
	waitingFrames = 16

	// stateSeconds is after how many seconds pages are told the state that has not
	// changed, but for how many buckets there are.
	stateSeconds = 10
)

// A hub asks the source once a second, and tells all who listen. It is safe for
// concurrent use.
type hub struct {
	source Source
	policy func() *policy.Matcher
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}

	mu        sync.Mutex // guards the fields below
	listeners map[*listener]struct{}
	instance  string
	state     []byte // the last frame of it
	compared  []byte // what it is compared by
	history   []sample
	whole     []byte         // the frame that tells all of it; nil until somebody asks
	traffic   [][]ruleSample // of the last seconds, the newest last

	// Only the goroutine that ticks uses these.
	last  Totals
	past  []Totals // the last ones, of which only the histograms count
	ticks int64    // when the last sample was taken, in Unix seconds
}

// A listener is one stream. Its channel is closed when it is too slow.
type listener struct{ frames chan []byte }

func newHub(source Source, policy func() *policy.Matcher) *hub {
	h := &hub{source: source, policy: policy, stop: make(chan struct{}), done: make(chan struct{}), listeners: map[*listener]struct{}{}}
	h.last, h.ticks = source.Totals(), time.Now().Unix()
	h.past = []Totals{h.last}
	state := h.now()
	h.instance = state.Instance
	h.setState(&state)
	go h.run()
	return h
}

// now is how things are. What is known of the policy need not be asked.
func (h *hub) now() State {
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

func (h *hub) close() {
	h.once.Do(func() { close(h.stop) })
	<-h.done
}

func (h *hub) run() {
	defer close(h.done)
	ticker := time.NewTicker(interval)
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
func (h *hub) tick(now int64) {
	totals, state := h.source.Totals(), h.now()
	elapsed := now - h.ticks
	if elapsed == 0 { // two ticks in one second: the next one has it all
		return
	}
	back := elapsed < 0 // the clock was set
	if elapsed = min(elapsed, int64(History/interval)); back {
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
	if more := len(h.history) - int(History/interval); more > 0 {
		h.history = append(h.history[:0], h.history[more:]...)
	}
	for range min(elapsed, int64(TrafficWindow/interval)) - 1 {
		h.traffic = append(h.traffic, nil)
	}
	h.traffic = append(h.traffic, rules)
	if more := len(h.traffic) - int(TrafficWindow/interval); more > 0 {
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
func (h *hub) times(now *Totals) (times [6]*float64) {
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
func (h *hub) setState(s *State) (changed bool) {
	told := struct {
		At time.Time `json:"at"`
		*State
	}{time.Now().UTC(), s}
	f, err := frame("state", "", told)
	if err != nil {
		slog.Error("dashboard: the state cannot be told", "error", err)
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
func (h *hub) samplesFrame(samples []sample, rules []ruleSample) []byte {
	told := struct {
		Step    int     `json:"step"`
		Samples [][]any `json:"samples"`
		Rules   [][]any `json:"rules"`
	}{int(interval / time.Second), [][]any{}, [][]any{}}
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
	f, err := frame("samples", h.instance+":"+strconv.FormatInt(last, 10), told)
	if err != nil {
		slog.Error("dashboard: samples cannot be told", "error", err)
	}
	return f
}

// tell leaves frames for a listener, or gives up on one that is too far behind.
func (h *hub) tell(l *listener, frames [][]byte) {
	for _, f := range frames {
		select {
		case l.frames <- f:
		default:
			delete(h.listeners, l)
			close(l.frames)
			return
		}
	}
}

// listen returns a listener, and what it has to know first: the state, and the samples
// after the one with that ID, or all.
func (h *hub) listen(after string) (l *listener, first [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l = &listener{make(chan []byte, waitingFrames)}
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
func (h *hub) since(id string) []sample {
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

// leave forgets a listener.
func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.listeners[l]; ok {
		delete(h.listeners, l)
		close(l.frames)
	}
}

// sums are what rules did in the last seconds.
func (h *hub) sums(window time.Duration) map[string][5]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][5]uint64{}
	for _, rules := range h.traffic[max(len(h.traffic)-int(window/interval), 0):] {
		for i := range rules {
			sum := all[rules[i].rule]
			for j, n := range rules[i].counts {
				sum[j] += n
			}
			all[rules[i].rule] = sum
		}
	}
	return all
}
