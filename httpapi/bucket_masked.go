// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

// Unmask returns the key that /v1/top shows as masked to who may not see it, as long
// as it is in those lists. Which key that is must not be told to them. It does not wait
// for anything.
func (a *API) Unmask(_ context.Context, masked string) (key string, ok bool) {
	limit, _, ok := policy.Key(masked).CutMask()
	if !ok || a.top.Tracker == nil {
		return "", false
	}
	now := a.top.Now()
	for _, rule := range a.rulesWith(limit) {
		for _, kind := range []topkeys.Kind{topkeys.Denied, topkeys.Near, topkeys.Shadow} {
			for _, k := range a.top.Tracker.Top(now, rule, kind, 0).Keys {
				if string(policy.Key(k.Key).Mask(a.top.MaskKey)) == masked {
					return k.Key, true
				}
			}
		}
	}
	return "", false
}

// rulesWith are the names of the rules that have a limit of that name.
func (a *API) rulesWith(limit string) (names []string) {
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

// maskBucket leaves of x what those may see who may not see keys. The key is masked for
// who asked by a mask. Who asked by the key knows it, and must not be told its mask: by
// that, they could find out whose the others are.
func (a *API) maskBucket(x *api.Bucket, key bool) {
	for _, o := range []*api.Override{x.Override, x.BlockedBy, x.AllowedBy} {
		maskOverride(o)
	}
	if !key {
		return
	}
	masked := policy.Key(x.Key).Mask(a.top.MaskKey)
	_, x.Mask, _ = masked.CutMask()
	x.Key, x.Masked = string(masked), true
	maskParts(x.Parts)
}

// trueKey is the key that is meant by one that may be masked.
func (a *API) trueKey(ctx context.Context, key string) (string, *api.Problem) {
	if key == "" {
		return "", api.NewProblem(http.StatusBadRequest, "the key is missing; send that of a bucket, as an explanation or /v1/top shows it")
	}
	if _, _, masked := policy.Key(key).CutMask(); !masked {
		return key, nil
	}
	if known, ok := a.Unmask(ctx, key); ok {
		return known, nil
	}
	return "", api.NewProblem(http.StatusNotFound, "no key that is masked like this is among the top keys of this server at the moment; it may be among another's")
}
