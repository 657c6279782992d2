{{- define "ranktree.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "ranktree.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "ranktree.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "ranktree.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "ranktree.selector" -}}
app.kubernetes.io/name: {{ include "ranktree.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end }}

{{- define "ranktree.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "ranktree.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "ranktree.tokensSecret" -}}
{{- .Values.auth.existingSecret | default (printf "%s-tokens" (include "ranktree.fullname" .)) }}
{{- end }}

{{- define "ranktree.natsUrl" -}}
{{- if .Values.nats.enabled }}
{{- printf "nats://%s-nats:4222" .Release.Name }}
{{- else }}
{{- required "set externalNats.url, or nats.enabled=true" .Values.externalNats.url }}
{{- end }}
{{- end }}

{{- define "ranktree.scheme" -}}
{{- if .Values.tls.existingSecret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* What values.schema.json cannot check. */}}
{{- define "ranktree.checked" -}}
{{- $v := .Values }}
{{- if gt (int $v.copies) (int $v.replicas) }}
{{- fail (printf "copies is %d, but there are %d nodes" (int $v.copies) (int $v.replicas)) }}
{{- end }}
{{- if and $v.own (ne (len $v.own) (int $v.replicas)) }}
{{- fail (printf "own names the shards of %d nodes, but there are %d" (len $v.own) (int $v.replicas)) }}
{{- end }}
{{- if and $v.own (gt (int $v.alsoReplicas) 0) }}
{{- fail "alsoReplicas is for the rule; with own, list the shards of both in own" }}
{{- end }}
{{- if and $v.auth.insecure $v.auth.existingSecret }}
{{- fail "auth.insecure and auth.existingSecret contradict each other" }}
{{- end }}
{{- if and (hasKey $v.settings "prefix") $v.nats.enabled }}
{{- fail "the permissions of charts/nats are written for the prefix ranktree; set nats.enabled=false for another" }}
{{- end }}
{{- if and $v.serviceMonitor.enabled $v.auth.existingSecret (not $v.serviceMonitor.tokenSecret) }}
{{- fail "set serviceMonitor.tokenSecret: the metrics need a token with the scope read" }}
{{- end }}
{{- if and (not $v.traces.endpoint) (or $v.traces.headersSecret $v.traces.caSecret) }}
{{- fail "traces have a Secret, but no collector; set traces.endpoint" }}
{{- end }}
{{- $old := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "ranktree.fullname" .) }}
{{- if $old }}
{{- $was := $old.metadata.annotations | default dict }}
{{- $shards := get $was "ranktree/shards" }}
{{- if and $shards (ne $shards (toString $v.shards)) }}
{{- fail (printf "there are %s shards, and their number cannot be changed; values say %v" $shards $v.shards) }}
{{- end }}
{{- $rule := get $was "ranktree/nodes" }}
{{- if and $rule (not $v.own) }}
{{- $kept := false }}
{{- range splitList "," $rule }}
{{- if or (eq . (toString $v.replicas)) (and (gt (int $v.alsoReplicas) 0) (eq . (toString $v.alsoReplicas))) }}
{{- $kept = true }}
{{- end }}
{{- end }}
{{- if not $kept }}
{{- fail (printf "shards could be without an owner for a while: change the nodes in two steps, with alsoReplicas (README.md, More or fewer nodes). Now they are placed for %s nodes; values say %v" $rule $v.replicas) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
