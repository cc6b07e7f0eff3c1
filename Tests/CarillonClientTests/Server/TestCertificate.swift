import NIOSSL

/// A certificate that signs itself, for tests of TLS on the loopback address. Its key protects nothing.
enum TestCertificate: Sendable {
    case forLocalhost
    case forElsewhere

    var server: NIOSSLContext {
        get throws {
            try NIOSSLContext(
                configuration: .makeServerConfiguration(
                    certificateChain: NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)).map { .certificate($0) },
                    privateKey: .privateKey(NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem))))
        }
    }

    var certificate: String {
        switch self {
        case .forLocalhost: Self.localhostCertificate
        case .forElsewhere: Self.elsewhereCertificate
        }
    }

    private var key: String {
        switch self {
        case .forLocalhost: Self.localhostKey
        case .forElsewhere: Self.elsewhereKey
        }
    }

    private static let localhostCertificate = """
        -----BEGIN CERTIFICATE-----
        MIIBizCCATKgAwIBAgIUOe7aOpMiZ/5xgx2GgufTQWzSijkwCgYIKoZIzj0EAwIw
        IDEeMBwGA1UEAwwVQ2FyaWxsb24gY2xpZW50IHRlc3RzMCAXDTI0MDEwMTAwMDAw
        MFoYDzIxMjQwMTAxMDAwMDAwWjAgMR4wHAYDVQQDDBVDYXJpbGxvbiBjbGllbnQg
        dGVzdHMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR99lP9hqjTbGgkEi2iztHn
        ZouM6/kg5y/o/LWWOHU2/wDwnmxy43fkFPEVrExaYy4xSKBUT7mhERtT9t3rRMyR
        o0gwRjAUBgNVHREEDTALgglsb2NhbGhvc3QwDwYDVR0TAQH/BAUwAwEB/zAdBgNV
        HQ4EFgQUNSjOvYVPO3CQEiwmz5molnvguakwCgYIKoZIzj0EAwIDRwAwRAIgIfII
        PHXlXQ7hG5eRJNpr5LQWkui0kDu5QMuxOMkV6Z4CIFtm989c0o7XdeDi7jacK8I6
        3JZHAh4wk6s/NuuksmsE
        -----END CERTIFICATE-----
        """

    private static let localhostKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgX3mnq8vWRMosoZLZ
        VaOA6Ezolk8wCBkBgRUPzKAiZ6yhRANCAAR99lP9hqjTbGgkEi2iztHnZouM6/kg
        5y/o/LWWOHU2/wDwnmxy43fkFPEVrExaYy4xSKBUT7mhERtT9t3rRMyR
        -----END PRIVATE KEY-----
        """

    private static let elsewhereCertificate = """
        -----BEGIN CERTIFICATE-----
        MIIBlDCCATqgAwIBAgIUS5tl4ZsOfYgUlPbD5m6qNKpV+nkwCgYIKoZIzj0EAwIw
        IDEeMBwGA1UEAwwVQ2FyaWxsb24gY2xpZW50IHRlc3RzMCAXDTI0MDEwMTAwMDAw
        MFoYDzIxMjQwMTAxMDAwMDAwWjAgMR4wHAYDVQQDDBVDYXJpbGxvbiBjbGllbnQg
        dGVzdHMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATsPa0hdowYgXvxMfLI/Fjf
        sFJFNunR1bHMa80wikbPJRG7WgUPQolD/9EpZAQ4NfNL0reH1WRi8xYNXnHeM2Ef
        o1AwTjAcBgNVHREEFTATghFlbHNld2hlcmUuZXhhbXBsZTAPBgNVHRMBAf8EBTAD
        AQH/MB0GA1UdDgQWBBSFPxEKR5sPRFbZ5/YJ7tLSAdT3RDAKBggqhkjOPQQDAgNI
        ADBFAiEAxVkVwLyUYwI0xj4mF2WPQobgZMeeULhzb0/4HtHGX0ECIH0jg7gIPrJA
        lvEEDBv+k7WRWCUun7A+w/hM+QBR9AP9
        -----END CERTIFICATE-----
        """

    private static let elsewhereKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg01pQpdZOyyCaFtYn
        uB456/0DdaeHJMCyuqYDiRP2nnyhRANCAATsPa0hdowYgXvxMfLI/FjfsFJFNunR
        1bHMa80wikbPJRG7WgUPQolD/9EpZAQ4NfNL0reH1WRi8xYNXnHeM2Ef
        -----END PRIVATE KEY-----
        """
}
