// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"
)

// addRules adds the rules of a plugin. Kong counts by address if a request lacks the identifier, so most plugins
// become two tiers.
func (f *kongFile) addRules(p kongPlugin) {
	config := p.node.field("config")
	by := config.field("limit_by").text()
	if p.rule.Group == "rate-limiting-advanced" {
		by = config.field("identifier").text()
	}
	rule, attribute := p.rule, ""
	switch by {
	case "consumer", "":
		attribute = kongConsumer
	case "credential":
		attribute = kongCredential
	case "header":
		if config.field("header_name").text() == "" {
			f.Differ(p.node.at(), "limit_by: header has no header_name, which Kong rejects.", "mete has no rule for it.", "")
			return
		}
		attribute = "header:" + strings.ToLower(config.field("header_name").text())
	case "ip":
		rule.LimitKeys = []string{"ip:address"}
	case "path":
		if config.field("path").text() == "" {
			f.Differ(p.node.at(), "limit_by: path has no path, which Kong rejects.", "mete has no rule for it.", "")
			return
		}
		f.addPath(p, config.field("path").text())
		return
	case "service":
		rule.LimitKeys = []string{}
		if !p.service.exists && !p.route.exists {
			f.Differ(p.node.at(), "limit_by: service counts each service by itself.", "mete has no rule for it, because the plugin is global.", "Put the plugin into each service.")
			return
		}
	default:
		f.Differ(p.node.at(), fmt.Sprintf("The plugin %s counts by %s.", rule.Group, by), "mete has no rule for it.", "")
		return
	}
	if attribute != "" {
		rule.LimitKeys = []string{attribute}
	}
	f.add(p, rule)
	if _, fixed := rule.Match[attribute].(string); attribute != "" && !fixed {
		f.add(p, byAddress(f.Rules, rule, attribute))
	}
	if attribute == kongConsumer || attribute == kongCredential || p.consumer != "" {
		f.Differ(p.node.doc.file, "Kong knows consumers by its authentication plugins.", "The rules read them from "+kongConsumer+" and "+kongCredential+", which Kong sets for upstreams.",
			"Run mete behind Kong, or replace the attributes with a verified one, such as jwt:sub. Do not accept the header fields from clients.")
	}
}

// addPath adds the tiers of limit_by: path. Requests with that path share a bucket, and others are counted by
// address.
func (f *kongFile) addPath(p kongPlugin, path string) {
	rule := p.rule
	if own, bound := rule.Match["path"]; bound && !allIn(pathValue(path), own) {
		f.Differ(p.node.at(), fmt.Sprintf("limit_by: path counts the path %s, which the plugin never sees.", path), "mete counts all its requests by address.", "")
	} else {
		one := byAddress(f.Rules, rule, "path")
		one.Name, one.LimitKeys = ruleName(f.Rules, rule.Name+path), []string{}
		one.Match["path"] = pathValue(path)
		f.add(p, one)
	}
	rule.LimitKeys = []string{"ip:address"}
	f.add(p, rule)
}

// add adds a rule and reports the differences of its plugin's settings.
func (f *kongFile) add(p kongPlugin, rule Rule) {
	config := p.node.field("config")
	rule.Name = ruleName(f.Rules, rule.Name)
	if config.field("fault_tolerant").text() == "false" {
		rule.OnStoreError = "closed"
	}
	f.Rules = append(f.Rules, rule)
	if len(rule.LimitKeys) > 0 && rule.LimitKeys[0] == "ip:address" {
		addressDiffers(&f.Result, p.node.doc.file, "Kong")
	}
	switch policy := config.field("policy").text() + config.field("strategy").text(); policy {
	case "", "local":
		f.Differ(p.node.doc.file, "policy: local counts in each node of Kong.", "Servers of mete with the same store share buckets.", "")
	default:
		f.Differ(config.at(), fmt.Sprintf("policy: %s shares the counters of nodes, with a delay if sync_rate is set.", policy), "mete decides exactly over its own store.", "Set store in mete.yaml.")
	}
	for _, name := range []string{"error_code", "error_message", "hide_client_headers", "retry_after_jitter_max"} {
		if n := config.field(name); n.exists && n.text() != "429" && n.text() != "false" {
			f.Differ(n.at(), fmt.Sprintf("%s: %s changes the answer to denied requests.", name, n.text()), "mete answers 429 with its own header fields and text.", "See headers and jitter in doc/policy.md.")
		}
	}
}
