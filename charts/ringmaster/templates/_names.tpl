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

{{- define "ringmaster.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "ringmaster.restrictedPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}
