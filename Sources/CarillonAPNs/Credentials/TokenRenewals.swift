import Metrics

/// Counts how often provider tokens are signed.
enum TokenRenewals {
    static func count() { Counter(label: "carillon_apns_token_renewals_total").increment() }
}
