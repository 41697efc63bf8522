// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aiusage"
)

// AI returns the metrics of language models. Clients name the models, so the counts bound their number.
func AI(state func() aiusage.State) Source { return read(state, writer.ai) }

var (
	aiRequests = prometheus.NewDesc("mete_ai_requests_total",
		"Finished requests to language models, by model and usage: reported by the provider, estimated from the streamed text, or unknown (the reservation stays).",
		[]string{"model", "usage"}, nil)
	aiTokens = prometheus.NewDesc("mete_ai_tokens_total", "Tokens of these requests by model and class, without overlap between classes.", []string{"model", "class"}, nil)
	aiMoney  = prometheus.NewDesc("mete_ai_money_total", "Price of these tokens by model, in the unit of the policy's prices.", []string{"model"}, nil)
	aiCut    = prometheus.NewDesc("mete_ai_streams_cut_total", "Streams that a limit ended, by model and on_limit_exceeded.", []string{"model", "how"}, nil)
	aiError  = prometheus.NewDesc("mete_ai_estimate_error_ratio",
		"Mean relative error of the last estimates, without its sign, by model and side (prompt or completion). The server estimates with learned ratios.", []string{"model", "side"}, nil)
	aiBias = prometheus.NewDesc("mete_ai_estimate_bias_ratio",
		"Mean relative error of the last estimates: negative if they are too low.", []string{"model", "side"}, nil)
	aiReserved = prometheus.NewDesc("mete_ai_reserved_tokens_total", "Tokens that settled requests had reserved, by the first limit of tokens of each rule.", []string{"rule"}, nil)
	aiCharged  = prometheus.NewDesc("mete_ai_charged_tokens_total", "Tokens that these requests were charged in the end.", []string{"rule"}, nil)
)

func (w writer) ai(s aiusage.State) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		w.to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for i := range s.Models {
		m := &s.Models[i]
		for _, c := range []result{{"reported", m.Reported}, {"estimated", m.Estimated}, {"unknown", m.Unknown}} {
			send(aiRequests, prometheus.CounterValue, float64(c.n), m.Model, c.name)
		}
		for _, c := range []result{{"input", m.Input}, {"cached", m.Cached}, {"cache_write", m.CacheWrite}, {"output", m.Output}, {"reasoning", m.Reasoning}} {
			send(aiTokens, prometheus.CounterValue, float64(c.n), m.Model, c.name)
		}
		for _, c := range []result{{"graceful_close", m.Closed}, {"error_chunk", m.Failed}} {
			send(aiCut, prometheus.CounterValue, float64(c.n), m.Model, c.name)
		}
		if s.Policy.Money {
			send(aiMoney, prometheus.CounterValue, tokens(m.Money), m.Model)
		}
		for side, r := range map[ai.Side]ai.Ratio{ai.PromptSide: m.Prompt, ai.CompletionSide: m.Completion} {
			if r.Requests > 0 {
				send(aiError, prometheus.GaugeValue, r.Error, m.Model, side.String())
				send(aiBias, prometheus.GaugeValue, r.Bias, m.Model, side.String())
			}
		}
	}
	for _, r := range s.Rules {
		send(aiReserved, prometheus.CounterValue, tokens(r.Reserved), r.Rule)
		send(aiCharged, prometheus.CounterValue, tokens(r.Charged), r.Rule)
	}
	w.gauge("mete_ai_open_breakers", "Keys with an open circuit breaker of a policy that this server denied.", float64(s.OpenBreakers()))
}
