// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

// Unmask returns the key for a mask that /v1/top and /v1/ai show to callers without the right to see keys. It finds only
// keys that are still in those lists, and does not block. Do not reveal the key to those callers.
func (a *API) Unmask(_ context.Context, masked string) (key string, ok bool) {
	limit, _, ok := policy.Key(masked).CutMask()
	if !ok {
		return "", false
	}
	if key, ok := a.unmaskAI(masked); ok || a.top.Tracker == nil {
		return key, ok
	}
	now := a.top.Now()
	for _, rule := range a.rulesWithLimit(limit) {
		for _, kind := range []topkeys.Kind{topkeys.KindDenied, topkeys.KindNear, topkeys.KindShadow} {
			for _, k := range a.top.Tracker.Top(now, rule, kind, 0).Keys {
				if string(policy.Key(k.Key).Mask(a.top.MaskKey)) == masked {
					return k.Key, true
				}
			}
		}
	}
	return "", false
}

func (a *API) rulesWithLimit(limit string) (names []string) {
	if m := a.lim.Policy(); m != nil {
		for _, r := range m.Rules() {
			for i := range r.Limits {
				if r.Limits[i].Name == limit {
					names = append(names, r.Name)
				}
			}
		}
	}
	return names
}

// shownSlotDigits is the number of digits of a slot's ID that all callers may see. They suffice to tell slots apart, but not to
// release one.
const shownSlotDigits = 8

// maskBucket removes from x the values that the role read may not see. It masks the key only for a caller that
// used a mask. A caller that used the key must not learn its mask, because masks must not identify keys.
func (a *API) maskBucket(x *api.Bucket, key bool) {
	for _, o := range []*api.Override{x.Override, x.BlockedBy, x.AllowedBy} {
		maskOverride(o)
	}
	for i := range x.Slots {
		x.Slots[i].ID = x.Slots[i].ID[:shownSlotDigits]
	}
	if !key {
		return
	}
	masked := policy.Key(x.Key).Mask(a.top.MaskKey)
	_, x.Mask, _ = masked.CutMask()
	x.Key, x.Masked = string(masked), true
	maskParts(x.Parts)
}

func (a *API) resolveKey(ctx context.Context, key string) (string, *api.Problem) {
	if key == "" {
		return "", api.NewProblem(http.StatusBadRequest, "the key is missing; send a bucket key from an explanation or /v1/top")
	}
	if _, _, masked := policy.Key(key).CutMask(); !masked {
		return key, nil
	}
	if known, ok := a.Unmask(ctx, key); ok {
		return known, nil
	}
	return "", api.NewProblem(http.StatusNotFound, "none of this server's top keys has this mask; try another server")
}
