import CarillonCore

/// The alert texts of apps.
struct AlertTexts: Sendable {
    private let documents: AppDocuments

    init(documents: AppDocuments) { self.documents = documents }

    /// Returns the alert text of an app; nil if the app has no alert text.
    func text(of app: AppSerial) async throws -> AlertText? {
        try await documents.value(of: Self.key(app)) { document -> AlertText? in
            document.flatMap { AlertText(document: $0.bytes) }
        }
    }

    static func key(_ app: AppSerial) -> AppDocument.Key { AppDocument.Key(.alertText, of: app) }
}
