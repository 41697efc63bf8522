// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Simulator is a server with the APIs of all providers.
type Simulator struct {
	*httptest.Server

	mu      sync.Mutex
	records map[string]*Record
	gates   map[string]chan struct{}
}

// A Record has the request and the sent tokens of a [Plan] with an ID.
type Record struct {
	Header http.Header
	Body   string

	Sent     int  // tokens that were written; the client can have received fewer
	Reported bool // the usage was written
	Done     bool // the answer is complete
	Ended    bool // the handler has returned
}

// Start runs a simulator until the end of the test.
func Start(t testing.TB) *Simulator {
	t.Helper()
	s := &Simulator{records: map[string]*Record{}, gates: map[string]chan struct{}{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections) // before Close, which waits for connections without a request
	return s
}

// Record returns a copy of the record of a plan. It is zero if the request has not arrived.
func (s *Simulator) Record(id string) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[id]; r != nil {
		return *r
	}
	return Record{}
}

// Proceed lets a plan with Hold go on.
func (s *Simulator) Proceed(id string) { close(s.gate(id)) }

func (s *Simulator) gate(id string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[id] == nil {
		s.gates[id] = make(chan struct{})
	}
	return s.gates[id]
}

// A call is a request to the simulator.
type call struct {
	Plan
	speaker
	model  string
	stream bool
	usage  bool // the client asks for the usage of the stream
	prompt int  // tokens
	sent   int  // tokens

	sim    *Simulator
	record *Record
}

func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	plan, err := readPlan(r.Header)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := &call{Plan: plan, sim: s, record: &Record{Header: r.Header.Clone(), Body: string(body)}}
	if plan.ID != "" {
		s.mu.Lock()
		if s.records[plan.ID] != nil {
			c.record = s.records[plan.ID] // a retry of the client
		}
		s.records[plan.ID] = c.record
		s.mu.Unlock()
	}
	defer c.note(func(r *Record) { r.Ended = true })
	if err := c.read(r, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.answer(w, r)
}

func (c *call) note(change func(*Record)) {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	change(c.record)
}

// read reads the parts of a request that matter. All formats together have few members, with the same meanings.
func (c *call) read(r *http.Request, body []byte) error {
	var q struct {
		Model   string
		Stream  bool
		Options *struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	if c.Strict && q.Options != nil {
		return errors.New("unknown parameter: stream_options")
	}
	var ok bool
	if c.speaker, c.model, c.stream, ok = speakerOf(r.URL.Path); !ok {
		return fmt.Errorf("no API has the path %s", r.URL.Path)
	}
	c.model = cmp.Or(c.model, q.Model)
	c.stream = c.stream || q.Stream
	c.usage = q.Options != nil && q.Options.Usage || !c.asks
	c.prompt = strings.Count(string(body), Word)
	return nil
}

func (c *call) answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case c.Status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(c.Status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	case c.stream:
		c.answerStream(w, r)
	default:
		c.answerJSON(w, r)
	}
}

func (c *call) answerJSON(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	c.await(r)
	c.sent = c.Tokens()
	body := c.whole(c)
	out := io.Writer(w)
	if c.Gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		out = z
	}
	if c.Cut > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		io.WriteString(out, body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	c.note(func(r *Record) { r.Sent, r.Reported, r.Done = c.sent, c.Usage != NoUsage, true })
	io.WriteString(out, body)
}

// answerStream writes one event at a time. A write of an event can have several of the format.
func (c *call) answerStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", c.contentType)
	control := http.NewResponseController(w)
	write := func(text string) bool {
		if r.Context().Err() != nil {
			return false
		}
		_, err := io.WriteString(w, text)
		return err == nil && (c.Burst || control.Flush() == nil)
	}
	if !write(c.start(c)) {
		return
	}
	for i, n := range c.Events {
		if c.Cut > 0 && i == c.Cut {
			_ = control.Flush()
			panic(http.ErrAbortHandler)
		}
		if i == 1 {
			c.await(r)
		}
		if c.Pause > 0 {
			select {
			case <-time.After(c.Pause):
			case <-r.Context().Done():
				return
			}
		}
		c.sent += n
		// The record is first: the client may not have more than it.
		c.note(func(r *Record) { r.Sent = c.sent })
		if !write(c.text(c, strings.Repeat(Word, n))) {
			return
		}
	}
	c.note(func(r *Record) { r.Reported = c.Usage != NoUsage && c.usage })
	if write(c.end(c)) {
		c.note(func(r *Record) { r.Done = true })
	}
}

// await waits for [Simulator.Proceed] if the plan has Hold.
func (c *call) await(r *http.Request) {
	if c.Hold {
		select {
		case <-c.sim.gate(c.ID):
		case <-r.Context().Done():
		}
	}
}

// countUsage returns the numbers of tokens that the provider reports.
func (c *call) countUsage() (prompt, completion int) {
	if c.Usage == LowUsage {
		return c.prompt, 1
	}
	return c.prompt, c.sent + c.Reasoning
}
