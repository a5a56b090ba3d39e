{{- define "ringmaster.labels" -}}
app.kubernetes.io/name: ringmaster-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "ringmaster.selector" -}}
app.kubernetes.io/name: ringmaster-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ringmaster.leaseNamespace" -}}
{{ .Values.namespace | default .Release.Namespace }}
{{- end -}}

{{- define "ringmaster.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "ringmaster.restrictedPod" -}}
runAsNonRoot: true
{{- if not .Values.openshift }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* of "operator", "worker" or "snapshots": include "ringmaster.image" (list . "worker") */ -}}
{{- define "ringmaster.image" -}}
{{- $image := (index . 0).Values.image -}}
{{- $name := index $image (index . 1) -}}
{{- $digest := index $image (printf "%sDigest" (index . 1)) -}}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $name }}{{ with $digest }}@{{ . }}{{ end }}
{{- end -}}

{{- /* The operator's option for metrics.open; nothing where that is false. */ -}}
{{- define "ringmaster.metricsOption" -}}
{{- $labels := list -}}
{{- range $key, $value := .Values.metrics.namespaceSelector -}}
{{- $labels = append $labels (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- if and $labels (not .Values.metrics.open) -}}
{{- fail "metrics.namespaceSelector says from where metrics.open admits scrapes: set metrics.open=true" -}}
{{- end -}}
{{- if $labels -}}
--metrics-from={{ join "," $labels }}
{{- else if .Values.metrics.open -}}
--open-metrics
{{- end -}}
{{- end -}}

{{- define "ringmaster.nodeSelector" -}}
{{- $wanted := .Values.nodeSelector -}}
{{- if .Values.arch -}}
{{- $wanted = merge (dict) $wanted (dict "kubernetes.io/arch" .Values.arch) -}}
{{- end -}}
{{- with $wanted }}{{ toYaml . }}{{ end }}
{{- end -}}

{{- define "ringmaster.nodeLabels" -}}
app.kubernetes.io/name: ringmaster-node
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "ringmaster.nodeSelectorLabels" -}}
app.kubernetes.io/name: ringmaster-node
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
