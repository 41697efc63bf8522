// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/policy"
)

// skipLogInterval is the shortest time between two records about one rule.
const skipLogInterval = time.Minute

// A skipLog logs that requests lack the key of a rule, so that the rule does not limit
// them. It logs names of rules and of attributes, and nothing of a request. Recording takes
// no lock. The zero skipLog has no rules.
type skipLog struct {
	mu     sync.Mutex // held while the policy is replaced
	byRule atomic.Pointer[map[string]*skips]
}

// skips are those of one rule.
type skips struct {
	count  atomic.Uint64 // since the last record
	logged atomic.Int64  // when, as Unix nanoseconds; 0 for never
}

// setPolicy makes room for the rules of a policy. Rules that stay keep their interval.
func (l *skipLog) setPolicy(m *policy.Matcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var before map[string]*skips
	if p := l.byRule.Load(); p != nil {
		before = *p
	}
	rules := make(map[string]*skips, len(m.Rules()))
	for _, r := range m.Rules() {
		if rules[r.Name] = before[r.Name]; rules[r.Name] == nil {
			rules[r.Name] = new(skips)
		}
	}
	l.byRule.Store(&rules)
}

// record counts one request that r did not limit. It logs the first at once, and then one
// record per interval at most, with the number of requests since the last record.
func (l *skipLog) record(log *slog.Logger, r *policy.Rule) {
	rules := l.byRule.Load()
	if rules == nil || (*rules)[r.Name] == nil {
		return // the policy was just replaced
	}
	s := (*rules)[r.Name]
	s.count.Add(1)
	now, last := time.Now().UnixNano(), s.logged.Load()
	if last != 0 && now-last < int64(skipLogInterval) || !s.logged.CompareAndSwap(last, now) {
		return
	}
	names := make([]string, len(r.LimitKeys))
	for i, a := range r.LimitKeys {
		names[i] = a.String()
	}
	log.Info("rule skipped: requests lack an attribute of limit_keys", "rule", r.Name,
		"limit_keys", strings.Join(names, ","), "requests", s.count.Swap(0))
}
