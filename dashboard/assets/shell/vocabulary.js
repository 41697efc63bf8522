// SPDX-License-Identifier: Apache-2.0
//
// The words of the server for the parts of a policy. Pages have no lists of their own. Pure.
//
//   learn(answer)      takes them from the answer of v1/me: {actions, algorithms, reasons}
//   actions()          the actions of overrides, each with its words and what it can be about
//   actionOf(name)     one of them; an unknown action has its name for all words
//   algorithms()       the algorithms of limits: [{name, label, reason, shape}]
//   algorithmOf(name)  one of them; an unknown algorithm has no shape
//   reasons()          the reasons of denials

let words = {actions: [], algorithms: [], reasons: []};

export function learn({actions = [], algorithms = [], reasons = []}) {
	words = {actions, algorithms, reasons};
}

export function actions() {
	return words.actions;
}

export function actionOf(name) {
	return words.actions.find((a) => a.action === name) ?? {action: name, label: name, verb: name, count: name, made: `${name}:`, color: 'level'};
}

export function algorithms() {
	return words.algorithms;
}

export function algorithmOf(name) {
	return words.algorithms.find((a) => a.name === name) ?? {name, label: name, shape: ''};
}

export function reasons() {
	return words.reasons;
}
