// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

// compareOverrides compares the active overrides of the files.
func (c *comparer) compareOverrides() (found []Difference) {
	old, new := c.activeOverrides(&c.old), c.activeOverrides(&c.new)
	for _, id := range slices.Sorted(maps.Keys(new)) {
		was, ok := old[id]
		if !ok {
			found = append(found, Difference{Kind: KindOverrideAdded, Override: id, Example: c.newExampleOfOverride(&c.new, new[id])})
			continue
		}
		if changes := c.compareOverride(was, new[id]); len(changes) > 0 {
			found = append(found, Difference{Kind: KindOverrideChanged, Override: id, Changes: changes, Example: c.newExampleOfOverride(&c.new, new[id])})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if _, ok := new[id]; !ok {
			found = append(found, Difference{Kind: KindOverrideRemoved, Override: id, Example: c.newExampleOfOverride(&c.old, old[id])})
		}
	}
	return found
}

type override struct {
	policy.Override
	boxes []space.Box
}

func (c *comparer) activeOverrides(s *side) map[string]*override {
	all := map[string]*override{}
	for i, o := range s.Overrides() {
		if bucket.At(o.ExpiresAt) <= c.now {
			continue
		}
		all[o.ID] = &override{Override: o}
		if i < len(s.view.Overrides) { // overrides of the file are in its order
			for _, clauses := range s.view.Overrides[i].Match {
				all[o.ID].boxes = append(all[o.ID].boxes, c.boxOf(s, clauses))
			}
		}
		if all[o.ID].boxes == nil {
			all[o.ID].boxes = []space.Box{nil} // all requests
		}
	}
	return all
}

func (c *comparer) boxOf(s *side, match []inspect.Clause) (b space.Box) {
	for _, cl := range match {
		slot := s.slots[cl.Slot]
		b = b.With(slot, c.space.Side(b, slot).And(cl.Set))
	}
	return b
}

// compareOverride returns the changed fields. Reasons and authors do not count.
func (c *comparer) compareOverride(old, new *override) (all []Change) {
	note := func(field, was, is string) {
		if was != is {
			all = append(all, Change{Field: field, Old: was, New: is})
		}
	}
	note("action", string(old.Action), string(new.Action))
	note("rules", sortedNames(old.Rules), sortedNames(new.Rules))
	if !c.equalUnions(old.boxes, new.boxes) {
		all = append(all, Change{Field: "match", Old: plainMatch(old.Match), New: plainMatch(new.Match)})
	}
	note("key", old.Key, new.Key)
	note("algorithm", old.Algorithm, new.Algorithm)
	note("algorithm_config", plainJSON(old.Config), plainJSON(new.Config))
	note("limits", plainJSON(old.Limits), plainJSON(new.Limits))
	note("expires_at", old.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z"), new.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z"))
	return all
}

// sortedNames joins names in a canonical order, because the order of an override's rules has no effect.
func sortedNames(rules []string) string {
	return strings.Join(slices.Sorted(slices.Values(rules)), ", ")
}

func plainJSON(text json.RawMessage) string {
	if len(text) == 0 {
		return ""
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	if d.Decode(&v) != nil {
		return string(text)
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return string(text)
	}
	return string(plain)
}

// plainMatch returns a match in a canonical form, without values that may be credentials.
func plainMatch(text json.RawMessage) string {
	var match any
	if json.Unmarshal(text, &match) != nil {
		return plainJSON(text)
	}
	list, several := match.([]any)
	if !several {
		list = []any{match}
	}
	for _, alternative := range list {
		clauses, _ := alternative.(map[string]any)
		for name := range clauses {
			if a, err := policy.ParseAttribute(name); err == nil && a.IsSecret() {
				clauses[name] = "…"
			}
		}
	}
	plain, err := json.Marshal(match)
	if err != nil {
		return plainJSON(text)
	}
	return string(plain)
}

func (c *comparer) newExampleOfOverride(s *side, o *override) *Example {
	var first *Example
	try := func(b space.Box, about ...*rule) bool {
		e := c.findExample([]space.Box{b}, about...)
		if first == nil || e != nil && !e.Old.Equal(&e.New) {
			first = e
		}
		return first != nil && !first.Old.Equal(&first.New)
	}
	for i := range s.rules[:min(len(s.rules), maxPieces)] {
		r := &s.rules[i]
		if len(o.Rules) > 0 && !slices.Contains(o.Rules, r.Name) {
			continue
		}
		for _, both := range c.intersect(o.boxes, r.boxes) {
			if try(both, r) {
				return first
			}
		}
	}
	for _, b := range o.boxes {
		if try(b) {
			break
		}
	}
	return first
}
