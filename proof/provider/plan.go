// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// PlanHeader has the [Plan] of a request, as JSON.
const PlanHeader = "X-Plan"

// A Plan tells how the simulator answers a request. The zero value is an answer of 20 tokens.
type Plan struct {
	ID     string `json:",omitempty"` // names the [Record]
	Status int    `json:",omitempty"` // an error of the provider
	Strict bool   `json:",omitempty"` // a body with stream_options gets a 400

	Events    []int `json:",omitempty"` // the tokens of each event
	Reasoning int   `json:",omitempty"` // tokens that are reported and not sent
	Usage     Usage `json:",omitempty"`
	NoEnd     bool  `json:",omitempty"` // the stream has no end, such as [DONE]
	Cut       int   `json:",omitempty"` // the connection breaks after so many events; 0 never
	Gzip      bool  `json:",omitempty"` // if the client accepts it

	Pause time.Duration `json:",omitempty"` // before each event
	Burst bool          `json:",omitempty"` // the events are sent in one packet
	Hold  bool          `json:",omitempty"` // the rest follows after [Simulator.Proceed]
}

// Usage is the kind of usage that the provider reports.
type Usage string

// The usages.
const (
	FinalUsage   Usage = ""
	NoUsage      Usage = "none"
	GrowingUsage Usage = "growing" // each event reports the usage until then, if the format can
	LowUsage     Usage = "low"     // one token of the answer, which is not true
)

// Word is the text of one token.
const Word = "tok "

// Tokens returns the tokens of the text of a whole answer.
func (p *Plan) Tokens() (sum int) {
	for _, n := range p.Events {
		sum += n
	}
	return sum
}

// Set adds the plan to a request.
func (p *Plan) Set(h http.Header) {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a plan always has a JSON form
	}
	h.Set(PlanHeader, string(text))
}

func readPlan(h http.Header) (p Plan, err error) {
	if text := h.Get(PlanHeader); text != "" {
		err = json.Unmarshal([]byte(text), &p)
	}
	if len(p.Events) == 0 {
		p.Events = []int{5, 5, 5, 5}
	}
	return p, err
}

// Prompt returns a prompt of so many tokens.
func Prompt(tokens int) string { return strings.Repeat(Word, tokens) }
