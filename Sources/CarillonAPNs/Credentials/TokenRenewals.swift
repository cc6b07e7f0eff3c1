import Metrics

/// Counts how often provider tokens are signed.
enum TokenRenewals {
    static func count(_ factory: any MetricsFactory) {
        Counter(label: "carillon_apns_token_renewals_total", dimensions: [], factory: factory).increment()
    }
}
