"""Attachments: uploaded in parts, fetched whole, removed."""

from kinds import Kind

PART = ["Content-Type: application/partial-upload"]


class Upload:
    def __init__(self, data):
        self.data = data
        # The offset in the answer, and the largest possible one.
        self.offset = self.tried = 0
        self.is_whole = self.may_be_removed = False


class Attachments(Kind):
    """Guarantee: an offset that was answered is kept, so that an upload is between its last two offsets; a whole attachment has the
    bytes that were sent, until its removal. A backup has the attachments that were whole."""

    name = "parts of attachments"
    most = 6

    async def prepare(self, http):
        self.uploads = {}

    async def change(self, http):
        unfinished = [path for path, it in self.uploads.items() if not it.is_whole]
        whole = [path for path, it in self.uploads.items() if it.is_whole]
        if len(whole) >= self.most:
            path = self.random.choice(whole)
            self.uploads[path].may_be_removed = True
            await self.ask(http, "DELETE", path, expected=(204, 404), secret=self.run.sender_key)
            del self.uploads[path]
        elif not unfinished:
            data = self.random.randbytes(self.random.randint(1, 200_000))
            headers = ["Upload-Complete: ?0", f"Upload-Length: {len(data)}"]
            _, fields, _ = await self.ask(
                http, "POST", "/v1/attachments?readers=senders", expected=(201,), secret=self.run.sender_key, headers=headers)
            self.uploads["/v1/attachments/" + fields["location"].rsplit("/", 1)[1]] = Upload(data)
        else:
            await self.append(http, unfinished[0], self.uploads[unfinished[0]])

    async def append(self, http, path, upload):
        if upload.tried > upload.offset or upload.may_be_removed:
            # Its last answer did not come.
            if not await self.look(http, path, upload):
                return
        if upload.is_whole:
            return
        end = min(len(upload.data), upload.offset + self.random.randint(1, 80_000))
        is_last = end == len(upload.data)
        upload.tried = end
        headers = PART + [f"Upload-Complete: {'?1' if is_last else '?0'}", f"Upload-Offset: {upload.offset}"]
        await self.ask(
            http, "PATCH", path, expected=(200, 201, 204), secret=self.run.sender_key, headers=headers,
            body=upload.data[upload.offset : end])
        upload.offset, upload.is_whole = end, is_last

    async def look(self, http, path, upload):
        """Finds out how far an upload is; returns whether it is there."""
        status, fields, _ = await self.ask(
            http, "HEAD", path, expected=(200, 204, 404), secret=self.run.sender_key)
        if status == 404:
            if not upload.may_be_removed:
                self.violation(f"{path} is gone")
            del self.uploads[path]
            return False
        offset = int(fields.get("upload-offset", -1))
        if not upload.offset <= offset <= upload.tried:
            self.violation(f"{path} is at {offset}, and was at {upload.offset} with {upload.tried} on its way")
        is_whole = fields.get("upload-complete") == "?1"
        if upload.is_whole and not is_whole:
            self.violation(f"{path} was whole, and is not")
        upload.offset = upload.tried = max(offset, 0)
        upload.is_whole = is_whole
        return True

    def certain(self):
        return {path for path, it in self.uploads.items() if it.is_whole and not it.may_be_removed}

    async def check(self, http, is_backup=False):
        if is_backup:
            return await self.check_backup(http)
        for path, upload in list(self.uploads.items()):
            if not await self.look(http, path, upload) or not upload.is_whole:
                continue
            _, _, data = await self.ask(http, "GET", path, secret=self.run.sender_key)
            if data != upload.data:
                self.violation(f"{path} has other bytes than were sent")
            self.ledger.counts["attachments fetched"] += 1

    async def check_backup(self, http):
        for path in self.in_backup & self.uploads.keys():
            status, _, data = await self.ask(http, "GET", path, expected=(200, 404), secret=self.run.sender_key)
            if status == 404 or data != self.uploads[path].data:
                self.violation(f"a backup has {path} with status {status} and {len(data)} bytes")
