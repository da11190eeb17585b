import { useMutation } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import type { Token } from "~/api/documents";
import { Confirm } from "~/design/Dialog";
import { When } from "~/design/When";

interface Props {
  readonly token: Token;
  readonly onClose: () => void;
  readonly onRevoked: () => void;
}

export function RevokeToken({ token, onClose, onRevoked }: Props) {
  const revoke = useMutation({
    mutationFn: () => answer(api.DELETE("/api/tokens/{token}", { params: { path: { token: token.id } } })),
    onSuccess: onRevoked,
  });
  return (
    <Confirm
      open
      danger
      title={`Revoke the token ${token.name}?`}
      action="Revoke it"
      onClose={onClose}
      onConfirm={() => revoke.mutate()}
      busy={revoke.isPending}
      problem={revoke.error}
    >
      <p>
        Programs that use it are refused from now on, and browsers that signed in with it are signed out. This cannot be
        undone.
      </p>
      <p className="quiet">
        Of {token.user}; last used: {token.last_used_at ? <When at={token.last_used_at} /> : "never"}.
      </p>
    </Confirm>
  );
}
