// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/workload"
)

type scenario struct {
	name  string // short: for -only, JSON and the targets
	title string
	kind  kind
	quota subject.Quota
	keys  int // keys that the limiter knows before the start or, in growth kinds, learns

	// calls returns the keys in the order of the calls. If it is nil, each key occurs once.
	calls func() workload.Keys
}

type kind int

const (
	steady kind = iota // a warm limiter, for a fixed time
	churn              // an empty limiter, until it knows all keys
	memory             // the heap of a limiter that knows all keys
)

const (
	many    = 100_000
	million = 1_000_000
)

var scenarios = []scenario{
	{name: "hot", title: "One hot key, allowed", quota: subject.Allow, keys: 1},
	{name: "deny", title: "One hot key, denied", quota: subject.Deny, keys: 1},
	{name: "uniform", title: "100,000 keys, uniformly", quota: subject.Allow, keys: many,
		calls: func() workload.Keys { return workload.Uniform(many, workload.UniformCalls) }},
	{name: "zipf", title: "1,000,000 keys, Zipf s = 1.1", quota: subject.Allow, keys: million,
		calls: func() workload.Keys { return workload.Zipf(million, workload.ZipfCalls, 1.1) }},
	{name: "churn", title: "A new key every call, 1,000,000 calls", kind: churn, quota: subject.Allow, keys: million},
	{name: "memory", title: "Memory, 1,000,000 keys of 16 bytes", kind: memory, quota: subject.Allow, keys: million},
}
