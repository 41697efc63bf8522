// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aiusage"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

const (
	aiPath = "/v1/ai"

	// maxAIKeys bounds each list of keys in /v1/ai.
	maxAIKeys = 20

	// loopMemory is how long /v1/ai lists a loop after its last denial.
	loopMemory = time.Hour
)

func (a *API) serveAI(w http.ResponseWriter, r *http.Request) *api.Problem {
	if _, p := parseQuery(r); p != nil {
		return p
	}
	now := time.Now()
	s := a.live.AI.State()
	v := aiView{api: a, rules: a.rules(), masked: a.roleOf(r) < RoleOperate}
	answer := api.AI{
		At: now.UTC(), Since: s.Since.UTC(), Masked: v.masked, Models: []api.AIModel{}, Rules: []api.AIRule{},
		Policy: api.AIPolicy{
			Tokens: s.Policy.Tokens, Money: s.Policy.Money, LoopDetection: s.Policy.Loops, CircuitBreaker: s.Policy.Breakers,
			PriceUnit: s.Policy.PriceUnit, PriceVersion: s.Policy.PriceVersion, PriceDate: s.Policy.PriceDate,
		},
		TokenKeys: v.spending(s.Tokens), MoneyKeys: v.spending(s.Money), Breakers: v.breakers(r.Context(), s.Breakers, now), Loops: v.loops(s.Loops, now),
	}
	for i := range s.Models {
		answer.Models = append(answer.Models, aiModelOf(&s.Models[i]))
	}
	for _, r := range s.Rules {
		answer.Rules = append(answer.Rules, api.AIRule{Rule: r.Rule, Reserved: api.Amount(r.Reserved), Charged: api.Amount(r.Charged)})
	}
	return serveJSON(w, answer)
}

func aiModelOf(m *aiusage.Model) api.AIModel {
	return api.AIModel{
		Model: m.Model, Reported: m.Reported, Estimated: m.Estimated, Unknown: m.Unknown,
		Input: m.Input, Cached: m.Cached, CacheWrite: m.CacheWrite, Output: m.Output, Reasoning: m.Reasoning,
		Money: api.Amount(m.Money), Closed: m.Closed, Failed: m.Failed, Prompt: aiEstimateOf(&m.Prompt), Completion: aiEstimateOf(&m.Completion),
	}
}

func aiEstimateOf(r *ai.Ratio) *api.AIEstimate {
	if r.Requests == 0 {
		return nil
	}
	return &api.AIEstimate{Requests: r.Requests, PerByte: r.PerByte, Error: r.Error, Bias: r.Bias}
}

// An aiView shows keys to one caller.
type aiView struct {
	api    *API
	rules  map[string]*policy.Rule
	masked bool
}

func (v *aiView) spending(keys []aiusage.Key) []api.AIKey {
	shown := []api.AIKey{}
	for _, k := range keys[:min(len(keys), maxAIKeys)] {
		key, mask, parts := v.key(k.Rule, k.Key)
		shown = append(shown, api.AIKey{
			Rule: k.Rule, Limit: toValidUTF8(policy.Key(k.Key).Limit()), Key: key, Mask: mask, Parts: parts,
			Requests: k.Requests, Spent: api.Amount(k.Spent), Error: api.Amount(k.Error), Last: k.Last.UTC(),
		})
	}
	return shown
}

// breakers returns the open circuit breakers. It reads their buckets, because another server can have reset them. Without the
// store, it returns them as this server last saw them.
func (v *aiView) breakers(ctx context.Context, keys []aiusage.StoppedKey, now time.Time) []api.AIStoppedKey {
	shown := []api.AIStoppedKey{}
	reads := true
	for _, k := range keys {
		if len(shown) == maxAIKeys {
			break
		}
		wait := waitUntil(k.Until, now)
		if reads && wait > 0 {
			b, err := v.api.lim.Bucket(ctx, k.Key)
			if reads = err == nil; reads {
				left, _ := b.Penalty()
				if wait != bucket.Never || left == 0 {
					wait = left
				}
			}
		}
		if wait == 0 {
			v.api.live.AI.Forget(k.Key)
			continue
		}
		shown = append(shown, v.stoppedKey(&k, wait))
	}
	return shown
}

func (v *aiView) loops(keys []aiusage.StoppedKey, now time.Time) []api.AIStoppedKey {
	shown := []api.AIStoppedKey{}
	for _, k := range keys[:min(len(keys), maxAIKeys)] {
		if now.Sub(k.Last) <= loopMemory {
			shown = append(shown, v.stoppedKey(&k, waitUntil(k.Until, now)))
		}
	}
	return shown
}

func (v *aiView) stoppedKey(k *aiusage.StoppedKey, wait time.Duration) api.AIStoppedKey {
	key, mask, parts := v.key(k.Rule, k.Key)
	return api.AIStoppedKey{
		Rule: k.Rule, Limit: toValidUTF8(policy.Key(k.Key).Limit()), Key: key, Mask: mask, Parts: parts,
		Denials: k.Denials, First: k.First.UTC(), Last: k.Last.UTC(), RetryAfter: api.Seconds(wait),
	}
}

// key returns a key as the caller may see it.
func (v *aiView) key(rule, of string) (key, mask string, parts []api.KeyPart) {
	parts = topParts(policy.Key(of), v.rules[rule])
	if !v.masked {
		return of, "", parts
	}
	masked := policy.Key(of).Mask(v.api.top.MaskKey)
	_, mask, _ = masked.CutMask()
	maskParts(parts)
	return string(masked), mask, parts
}

// waitUntil returns the time until t, which is zero if only a reset helps.
func waitUntil(t, now time.Time) time.Duration {
	if t.IsZero() {
		return bucket.Never
	}
	return max(t.Sub(now), 0)
}

// unmaskAI returns the key for a mask in /v1/ai.
func (a *API) unmaskAI(masked string) (key string, ok bool) {
	if a.live.AI == nil {
		return "", false
	}
	s := a.live.AI.State()
	for _, keys := range [][]aiusage.Key{s.Tokens, s.Money} {
		for _, k := range keys {
			if string(policy.Key(k.Key).Mask(a.top.MaskKey)) == masked {
				return k.Key, true
			}
		}
	}
	for _, keys := range [][]aiusage.StoppedKey{s.Breakers, s.Loops} {
		for _, k := range keys {
			if string(policy.Key(k.Key).Mask(a.top.MaskKey)) == masked {
				return k.Key, true
			}
		}
	}
	return "", false
}
