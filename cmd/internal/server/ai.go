// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"

	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aitokens"
	"github.com/metehq/mete/aiusage"
	"github.com/metehq/mete/cmd/internal/metrics"
)

// learnedModels bounds the models with a ratio of their own.
const learnedModels = 1000

// countAI counts the tokens of language models for the metrics and the dashboard.
func (a *assembly) countAI() (err error) {
	if a.ratios, err = ai.NewRatios(learnedModels); err != nil {
		return err
	}
	counts := aiusage.New(a.ratios)
	a.live.AI = counts
	a.onDenial = append(a.onDenial, counts.OnDenial)
	a.onPolicy = append(a.onPolicy, counts.SetPolicy)
	a.metrics.Add(metrics.AI(counts.State))
	return nil
}

// newTiktoken returns an estimator that builds its vocabularies on first use. They take about 30 MB, which only policies with
// token_source: tiktoken need.
func newTiktoken() ai.Estimator {
	counter := sync.OnceValue(aitokens.New)
	return func(r *ai.Request) int64 { return counter().Estimate(r) }
}
