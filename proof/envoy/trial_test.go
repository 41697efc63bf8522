// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete/envoyapi/dropin"
)

// A trial is a configuration and requests for it.
type trial struct {
	domains []*node // the key of a domain is its name
	steps   []step
}

// A node is a domain or a descriptor of a configuration.
type node struct {
	key, value string
	limit      string   // lines of YAML below rate_limit, or ""
	flags      []string // such as "shadow_mode: true"
	children   []*node
}

// A step is a request at a time.
type step struct {
	at      time.Time
	request *ratelimitv3.RateLimitRequest
}

// files returns the configuration, one file for each domain.
func (tr *trial) files() []dropin.File {
	var files []dropin.File
	for i, d := range tr.domains {
		text := fmt.Sprintf("domain: %s\n", d.key)
		if len(d.children) > 0 {
			text += "descriptors:\n" + yamlList(d.children, "  ")
		}
		files = append(files, dropin.File{Name: fmt.Sprintf("config.%d", i), Data: []byte(text)})
	}
	return files
}

func yamlList(nodes []*node, indent string) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s- key: %q\n", indent, n.key)
		if n.value != "" {
			fmt.Fprintf(&b, "%s  value: %q\n", indent, n.value)
		}
		if n.limit != "" {
			fmt.Fprintf(&b, "%s  rate_limit:\n", indent)
			for line := range strings.Lines(n.limit) {
				fmt.Fprintf(&b, "%s    %s", indent, line)
			}
		}
		for _, flag := range n.flags {
			fmt.Fprintf(&b, "%s  %s\n", indent, flag)
		}
		if len(n.children) > 0 {
			fmt.Fprintf(&b, "%s  descriptors:\n%s", indent, yamlList(n.children, indent+"    "))
		}
	}
	return b.String()
}

var (
	keys      = []string{"ip", "path", "user", "tenant", "Method"}
	values    = []string{"", "", "a", "b", "abc", "/x/y", "10.0.0.1", "v:1|2"}
	wildcards = []string{"*", "a*", "/x*", "10.*"}
	inner     = []string{"a*c", "*b*", "*", "/x/*", "*y", "**"} // only the newest original has them
	units     = []string{"second", "minute", "hour", "day", "week", "month", "year", "MINUTE", "Hour"}
	names     = []string{"n0", "n1", "n2"}
)

// A maker draws trials. It draws nothing on which the original is known to be wrong: see bugs_test.go.
type maker struct {
	*rand.Rand
	newest   bool // draw features of the newest original
	metadata bool // draw metadata in place of metrics: limits below value_to_metric lose theirs in the original
}

func (m maker) chance(percent int) bool { return m.IntN(100) < percent }

func pick[T any](m maker, of []T) T { return of[m.IntN(len(of))] }

func (m maker) trial(requests int) *trial {
	tr := &trial{}
	m.metadata = m.newest && m.chance(50)
	for i := range 1 + m.IntN(2) {
		tr.domains = append(tr.domains, &node{key: fmt.Sprintf("domain%d", i), children: m.nodes(1 + m.IntN(3))})
	}
	at := time.Unix(1_700_000_000+m.Int64N(300_000_000), 0)
	for range requests {
		at = at.Add(m.pause())
		tr.steps = append(tr.steps, step{at, m.request(tr.domains)})
	}
	return tr
}

// pause draws the time between two requests. Most requests share a window.
func (m maker) pause() time.Duration {
	switch r := m.IntN(1000); {
	case r < 700:
		return time.Duration(m.IntN(20)) * time.Millisecond
	case r < 900:
		return time.Duration(m.IntN(2000)) * time.Millisecond
	case r < 960:
		return time.Duration(m.IntN(90)) * time.Second
	case r < 985:
		return time.Duration(m.IntN(90)) * time.Minute
	default:
		return time.Duration(m.IntN(24*40)) * time.Hour
	}
}

// nodes draws descriptors of the given depth. A pair of key and value occurs once.
func (m maker) nodes(depth int) []*node {
	var nodes []*node
	seen := map[string]bool{}
	for range 1 + m.IntN(5) {
		n := &node{key: pick(m, keys), value: m.value()}
		if seen[n.key+"_"+n.value] {
			continue
		}
		seen[n.key+"_"+n.value] = true
		if m.chance(75) {
			m.addLimit(n)
		}
		if strings.Contains(n.value, "*") && m.chance(50) {
			n.flags = append(n.flags, "share_threshold: true")
		}
		if depth > 1 && m.chance(60) {
			n.children = m.nodes(depth - 1)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (m maker) value() string {
	switch {
	case m.chance(70):
		return pick(m, values)
	case m.newest && m.chance(50):
		return pick(m, inner)
	default:
		return pick(m, wildcards)
	}
}

func (m maker) addLimit(n *node) {
	if m.chance(8) {
		n.limit = "unlimited: true\n"
	} else {
		n.limit = fmt.Sprintf("unit: %s\nrequests_per_unit: %d\n", pick(m, units), m.perUnit())
	}
	name := ""
	if m.chance(40) {
		name = pick(m, names)
		n.limit += "name: " + name + "\n"
	}
	if m.chance(25) {
		if other := pick(m, names); other != name {
			n.limit += "replaces:\n- name: " + other + "\n"
		}
	}
	if m.chance(15) {
		n.flags = append(n.flags, "shadow_mode: true")
	}
	if m.newest && m.chance(20) {
		n.flags = append(n.flags, "quota_mode: true")
	}
	switch {
	case m.metadata && m.chance(40): // flat, because the original mixes up nested metadata
		n.flags = append(n.flags, fmt.Sprintf("metadata: {plan: %s, %s: [1, on, null, {y: no, 0x10: 1_0, 1.50: ~}]}", pick(m, names), pick(m, names)))
	case m.metadata:
	case m.chance(10):
		n.flags = append(n.flags, "detailed_metric: true")
	case m.chance(10):
		n.flags = append(n.flags, "value_to_metric: true")
	}
}

func (m maker) perUnit() uint32 {
	switch {
	case m.chance(5):
		return 0
	case m.chance(3):
		return math.MaxUint32
	case m.chance(10):
		return 1000
	default:
		return 1 + uint32(m.IntN(15))
	}
}

func (m maker) request(domains []*node) *ratelimitv3.RateLimitRequest {
	d := pick(m, domains)
	req := &ratelimitv3.RateLimitRequest{Domain: d.key}
	if m.chance(2) {
		req.Domain = pick(m, []string{"other", "", "domain"})
	}
	if m.chance(15) {
		req.HitsAddend = m.hits()
	}
	for range m.IntN(4) + 1 {
		if len(req.Descriptors) > 0 && m.chance(10) {
			req.Descriptors = append(req.Descriptors, req.Descriptors[0])
			continue
		}
		req.Descriptors = append(req.Descriptors, m.descriptor(d))
	}
	if m.chance(1) {
		req.Descriptors = nil
	}
	return req
}

func (m maker) hits() uint32 {
	if m.chance(3) {
		return math.MaxUint32
	}
	return uint32(m.IntN(6))
}

func (m maker) descriptor(d *node) *commonv3.RateLimitDescriptor {
	desc := &commonv3.RateLimitDescriptor{}
	for nodes := d.children; len(nodes) > 0; {
		n := pick(m, nodes)
		e := &commonv3.RateLimitDescriptor_Entry{Key: n.key, Value: n.value}
		if n.value == "" || m.chance(10) {
			e.Value = pick(m, values)
		}
		e.Value = strings.ReplaceAll(e.Value, "*", pick(m, []string{"", "b", "xyz"}))
		desc.Entries = append(desc.Entries, e)
		if n.limit != "" && m.chance(60) {
			break
		}
		nodes = n.children
	}
	if m.chance(5) {
		desc.Entries = append(desc.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pick(m, keys), Value: pick(m, values)})
	}
	if m.chance(12) {
		desc.HitsAddend = wrapperspb.UInt64(uint64(m.hits()))
	}
	if m.chance(6) {
		// The original counts hits for the key only. Different limits for one key would share a counter.
		desc.Limit = overrideOf(desc)
		desc.Entries = append(desc.Entries, &commonv3.RateLimitDescriptor_Entry{Key: "override", Value: "yes"})
	}
	return desc
}

// overrideOf returns a limit that depends on the entries only.
func overrideOf(desc *commonv3.RateLimitDescriptor) *commonv3.RateLimitDescriptor_RateLimitOverride {
	h := fnv.New32()
	for _, e := range desc.Entries {
		fmt.Fprint(h, e.Key, e.Value)
	}
	n := h.Sum32()
	return &commonv3.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: n % 12,
		Unit:            typev3.RateLimitUnit(1 + n/12%7),
	}
}
