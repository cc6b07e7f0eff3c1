package import CarillonWire

/// The push credentials of an app for a gateway in an environment.
package struct GatewayCredential: Equatable, Sendable {
    package var app: AppID
    package var queue: PushQueue
    package var sealed: [UInt8]
    /// A description of the push credentials for operators. It contains no secret.
    package var summary: String
    package var setAt: Timestamp

    package init(app: AppID, queue: PushQueue, sealed: [UInt8], summary: String, setAt: Timestamp) {
        self.app = app
        self.queue = queue
        self.sealed = sealed
        self.summary = summary
        self.setAt = setAt
    }

    /// - Throws: ``StoreFault`` if the document cannot be read.
    package init(_ document: AppDocument, of app: AppID, for queue: PushQueue) throws(StoreFault) {
        guard let parts = SealedDocument(document.bytes) else {
            throw StoreFault(.unavailable, "the credentials of an app cannot be read")
        }
        self.init(app: app, queue: queue, sealed: parts.sealed, summary: parts.text, setAt: document.setAt)
    }

    /// The bytes of the document.
    package var bytes: [UInt8] { SealedDocument(text: summary, sealed: sealed).bytes }
}

extension PushQueue {
    /// The document of the push queue's push credentials.
    package var credential: AppDocument.Key { AppDocument.Key(.credential, of: app, name: environment.rawValue) }
}
